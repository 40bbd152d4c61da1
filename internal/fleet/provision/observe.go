package provision

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// observeClaim counts the claims of a request that needed no launch.
func (p *Provision) observeClaim(now time.Time) {
	if len(p.q.Taken) > 0 && p.q.Launches == 0 && !p.began.IsZero() {
		p.env.Observer.Claimed(now.Sub(p.began))
	}
}

// observeOutcome counts a request that has its hosts. A spare waits for as long as it takes, and so says nothing.
func (p *Provision) observeOutcome(q lifecycle.Request, now time.Time) {
	if q.Outcome == lifecycle.OutcomeReady && q.Kind != lifecycle.RequestForSpare {
		p.env.Observer.Provisioned(p.start(q), now.Sub(q.CreatedAt))
	}
}

// start is how the slowest host of a request came.
func (p *Provision) start(q lifecycle.Request) string {
	slowest := "hot"
	for _, t := range q.Taken {
		switch {
		case !t.Reused:
			return "cold"
		case p.hosts[t.HostKey].Standby == nil:
			slowest = "warm"
		}
	}
	return slowest
}

// observeTaken counts the hosts that a write added to a request.
func (p *Provision) observeTaken(added []lifecycle.Taken) {
	pooled := 0
	for _, t := range added {
		if t.Reused {
			pooled++
		}
	}
	if len(added) > 0 {
		p.env.Observer.Took(p.q.Spec.Pool, pooled, len(added)-pooled)
	}
}

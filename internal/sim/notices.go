package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// handleNotices makes a replica handle notices, whether it has the lease of the sweeps or not: that
// only one replica does so saves calls and nothing else.
func (r *replica) handleNotices() {
	l := r.l
	var round *fleet.NoticeRound
	failures := 0
	a := &engine.Actor{Name: r.name + " notices", Proc: r.proc}
	a.Step = func() (time.Time, bool) {
		if round == nil {
			round = r.fleet.NewNoticeRound()
		}
		p, err := r.step(a, round)
		l.rules.CheckError("notices", err)
		switch {
		case err != nil:
			failures++
			round = nil
			return l.Now.Add(l.Backoff(failures)), false
		case p.Done:
			round, failures = nil, 0
			return l.Now.Add(l.Between(5*time.Second, 20*time.Second)), false
		}
		return l.Now.Add(p.Wait + l.Latency()), false
	}
	l.Spawn(a)
}

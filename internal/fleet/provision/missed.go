package provision

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// This file has why a request could not have an idle host. It is noted on the way: nothing is read for it.

// unfit is why the request cannot have the host of a message; empty: it can.
func (p *Provision) unfit(m lifecycle.Message) arrival.Miss {
	switch {
	case m.Pool != p.q.Spec.Pool:
		return arrival.MissPool
	case m.TrustKey != p.trustKey() && m.TrustKey != "":
		return arrival.MissTrust
	case !matchesAny(p.q.Spec.InstanceTypes, m.InstanceType), !p.poolAllows(m.InstanceType):
		return arrival.MissType
	case !p.largeEnough(m):
		return arrival.MissSize
	}
	return ""
}

// unclaimable is why a claim of the host would fail if its record is still as it was read; empty: it would not.
func (p *Provision) unclaimable(r lifecycle.Record, now time.Time) arrival.Miss {
	switch {
	case lifecycle.Claim{Assignment: r.Assignment, TrustKey: r.TrustKey, Now: now, Margin: p.policy().ClaimMargin}.Holds(r):
		return ""
	case !r.Pooled():
		return arrival.MissLost
	case r.Held(now):
		return arrival.MissHeld
	}
	return arrival.MissLeaving
}

// missed says why the pass over the pool spared no launch.
func (p *Provision) missed() []arrival.Miss {
	if p.policy().Reuse == lifecycle.ReuseNone {
		return arrival.With(p.sel.missed, arrival.MissOneRun)
	}
	return p.sel.missed
}

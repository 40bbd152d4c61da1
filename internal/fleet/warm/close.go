package warm

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// NewClose begins a sweep of one pool whose row is due because no sweep tops it up: the
// configuration has no warm hosts for it, or no such pool. A launch that was cut short is
// adopted, the unused hosts are retired, and the row goes once none of them is left.
func (w *Pools) NewClose(pool string) *Sweep {
	s := &Sweep{env: w, Stages: w.Ops.Stages("due")}
	if w.Pools[pool].Warm == nil {
		s.pools = []string{pool}
	}
	s.Next = s.load
	return s
}

// close retires the hosts of a pool without warm hosts.
func (s *Sweep) close(ctx context.Context, q lifecycle.Request, hosts warmHosts, now time.Time) (op.Progress, error) {
	hold, err := s.env.Hosts.FleetHold(ctx)
	if err != nil {
		return op.Again, err
	}
	facts := policy.WarmFacts{Hosts: hosts.seen}
	if hold.InForce(now) {
		facts.Held = hold.String()
	}
	d := policy.TopUp(policy.WarmPolicy{}, facts, now)
	d.Code, d.Reason = lifecycle.ReasonWarmRemoved, "the configuration has no warm hosts for it any more"
	if facts.Held != "" {
		d.Reason += ", and " + facts.Held
	}
	s.tell(q, d, now)
	s.willRetire(d, hosts)
	q = q.WarmChecked(now)
	if len(q.Taken) == 0 {
		q.DueAt, q.ExpiresAt = time.Time{}, now.Add(s.env.Timing.KeepRequests)
	}
	return s.write(ctx, q, s.end)
}

package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// CountInterruption counts the interruption of a spot host for the breaker of its
// pool. It is safe to repeat: each host counts once.
func (ld *Ledger) CountInterruption(ctx context.Context, r lifecycle.Record, now time.Time) error {
	breaker := ld.Pools[r.Pool].SpotBreaker
	if ld.Guards == nil || !breaker.On() || r.UsageClass != lifecycle.UsageSpot || r.State == lifecycle.StateTerminated {
		return nil
	}
	return op.Rewrite("breaker of pool "+r.Pool, func() error {
		b, err := ld.Guards.Breaker(ctx, r.Pool)
		if err != nil {
			return fmt.Errorf("read the breaker of pool %s: %w", r.Pool, err)
		}
		next, news := breaker.Heard(b, r.InstanceID, now)
		if !news {
			return nil
		}
		if _, err = ld.Guards.UpdateBreaker(ctx, next); err != nil {
			return fmt.Errorf("write the breaker of pool %s: %w", r.Pool, err)
		}
		if next.OpenUntil.After(b.OpenUntil) {
			ld.Log.Warn("too many spot hosts were interrupted", logkey.Pool, r.Pool, logkey.Hosts, len(next.Interruptions), logkey.Until, next.OpenUntil)
		}
		return nil
	})
}

// SpotPaused returns why and until when the breaker of its pool pauses the spot hosts that a
// request launches next; an empty why: it does not.
func (ld *Ledger) SpotPaused(ctx context.Context, q lifecycle.Request, now time.Time) (why string, until time.Time, err error) {
	breaker := ld.Pools[q.Spec.Pool].SpotBreaker
	if ld.Guards == nil || !breaker.On() || UsageOf(q) != lifecycle.UsageSpot {
		return "", until, nil
	}
	b, err := ld.Guards.Breaker(ctx, q.Spec.Pool)
	if err != nil {
		return "", until, fmt.Errorf("read the breaker of pool %s: %w", q.Spec.Pool, err)
	}
	if !breaker.Open(b, now) {
		return "", until, nil
	}
	return fmt.Sprintf("EC2 interrupted %d spot hosts or more of pool %s within %s", breaker.Interruptions, q.Spec.Pool, breaker.Within), b.OpenUntil, nil
}

// ThroughBreaker applies the breaker of its pool to the next launch of a request: on-demand
// hosts if the request allows them, and otherwise spot hosts in spite of the breaker. why is
// empty if the breaker does not matter.
func (ld *Ledger) ThroughBreaker(ctx context.Context, q lifecycle.Request, now time.Time) (_ lifecycle.Request, why string, err error) {
	why, until, err := ld.SpotPaused(ctx, q, now)
	switch {
	case err != nil || why == "":
		return q, "", err
	case !q.Spec.AllowOnDemand:
		return q, why + "; launching spot hosts anyway, since the request allows no others", nil
	}
	q.OnDemand = true
	return q, fmt.Sprintf("%s: on-demand hosts are launched until %s", why, hosts.ClockTime(until)), nil
}

// UsageOf is the usage class that a request launches now.
func UsageOf(q lifecycle.Request) lifecycle.UsageClass {
	if q.OnDemand {
		return lifecycle.UsageOnDemand
	}
	return q.Spec.UsageClass
}

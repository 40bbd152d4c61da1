package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// poolLaunches returns how many of the hosts that the request lacks its pool's maximum
// lets it launch. If there are none, or on an error, it is stopped, and the caller returns
// progress and err.
func (p *Provision) poolLaunches(ctx context.Context, now time.Time) (count int, stopped bool, progress op.Progress, err error) {
	l, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool)
	if !ok {
		return p.lacks(), false, op.Again, nil
	}
	quota, err := p.env.Quota.Read(ctx, l)
	if err != nil {
		return 0, true, op.Again, err
	}
	if quota.Remaining() == 0 {
		progress, err = p.waitForQuota(ctx, quota, 1, now)
		return 0, true, progress, err
	}
	return min(p.lacks(), quota.Remaining()), false, op.Again, nil
}

// reserveLaunch reserves the quota of the pool for the launch in the request's row. If
// another request has taken the quota in the meantime, the launch intent is dropped. That
// is safe: the reservation is made before CreateFleet, so no machine exists yet.
func (p *Provision) reserveLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	l, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool)
	p.Next = p.launch
	if !ok || !now.Before(p.q.Deadline) {
		return p.launch(ctx, now)
	}
	quota, reserved, err := p.env.Quota.ReserveLaunch(ctx, l, p.q, LaunchEntry(p.q, now))
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.Next = p.reserveLaunch
		p.reserved.tries++
		return op.Wait(p.env.Ops.Backoff(p.reserved.tries)), nil
	case err != nil:
		p.Next = p.reserveLaunch
		return op.Again, err
	case reserved:
		p.reserved.tries = 0
		return op.Again, nil
	}
	q := p.q
	q.Launch, q.QuotaReason = nil, p.env.quotaReason(quota, q, p.q.Launch.Count)
	return p.write(ctx, q, now, func() {
		p.retryAt = now.Add(p.env.Timing.Relaunch)
		p.Next = p.await
	})
}

// quotaReason says what uses up the quota that a request lacks. In a pool these may be idle
// hosts that are bound to another trust key: it says when used hosts leave, not whose they
// are.
func (pr *Provisioner) quotaReason(quota policy.Quota, q lifecycle.Request, needs int) string {
	why := quota.Reason(q, needs)
	rules := pr.Hosts.Policy(q.Spec.Pool)
	if quota.Limit.Kind == lifecycle.QuotaPool && rules.Reuse != lifecycle.ReuseNone {
		why += fmt.Sprintf("; of its hosts a used one leaves once it was idle for %s", rules.IdleTime)
	}
	return why
}

// LaunchEntry is the reservation of the launch in the request's row.
func LaunchEntry(q lifecycle.Request, now time.Time) lifecycle.Reservation {
	return lifecycle.Reservation{
		Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Hosts: q.Launch.Count, At: now,
	}
}

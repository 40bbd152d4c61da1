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

// poolLaunches returns how many of the hosts that the request lacks its pool's maximum lets it launch. If
// there are none, or on an error, it is stopped, and the caller returns progress and err.
func (p *Provision) poolLaunches(ctx context.Context, now time.Time) (count int, stopped bool, progress op.Progress, err error) {
	l, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool)
	if !ok {
		return p.lacks(), false, op.Again, nil
	}
	room, err := p.env.Quota.Read(ctx, l)
	if err != nil {
		return 0, true, op.Again, err
	}
	if room.Remaining() == 0 {
		progress, err = p.waitForQuota(ctx, room, 1, now)
		return 0, true, progress, err
	}
	return min(p.lacks(), room.Remaining()), false, op.Again, nil
}

// reserveLaunch makes room in the pool for the launch that is written down. If another request has taken it
// since, the launch is given up, and has not been made: its reservation comes before its call.
func (p *Provision) reserveLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	room, reserved, err := p.launcher.Reserve(ctx, p.env, p.q, now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.booking.tries++
		return op.Wait(p.env.Ops.Backoff(p.booking.tries)), nil
	case err != nil:
		return op.Again, err
	case reserved:
		p.booking.tries = 0
		return op.Again, nil
	}
	q := p.q
	q.Launch, q.QuotaReason = nil, p.env.quotaReason(room, q, p.q.Launch.Count)
	return p.write(ctx, q, now, func() {
		p.retryAt, p.search, p.launcher = now.Add(p.env.Timing.Relaunch), waiting, Launcher{}
	})
}

// quotaReason says what uses up the quota that a request lacks. In a pool these may be idle hosts that are
// bound to another trust key: it says when used hosts leave, not whose they are.
func (pr *Provisioner) quotaReason(room policy.Quota, q lifecycle.Request, needs int) string {
	why := room.Reason(q, needs)
	rules := pr.Hosts.Policy(q.Spec.Pool)
	if room.Limit.Kind == lifecycle.QuotaPool && rules.Reuse != lifecycle.ReuseNone {
		why += fmt.Sprintf("; of its hosts a used one leaves once it was idle for %s", rules.IdleTime)
	}
	return why
}

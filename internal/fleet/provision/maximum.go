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

// poolLaunches is how many of the hosts that the request lacks its pool has room to
// launch. With none it is stopped: what to do instead.
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
		progress, err = p.full(ctx, room, 1, now)
		return 0, true, progress, err
	}
	return min(p.lacks(), room.Remaining()), false, op.Again, nil
}

// bookLaunch makes room in the pool for the launch that is written down. If somebody
// else has taken it meanwhile the launch is given up, which nobody has made: its entry
// comes before its call.
func (p *Provision) bookLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	l, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool)
	p.Next = p.launch
	if !ok || !now.Before(p.q.Deadline) {
		return p.launch(ctx, now)
	}
	room, booked, err := p.env.Quota.ReserveLaunch(ctx, l, p.q, LaunchEntry(p.q, now))
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.Next = p.bookLaunch
		p.booking.tries++
		return op.Wait(p.env.Ops.Backoff(p.booking.tries)), nil
	case err != nil:
		p.Next = p.bookLaunch
		return op.Again, err
	case booked:
		p.booking.tries = 0
		return op.Again, nil
	}
	q := p.q
	q.Launch, q.QuotaReason = nil, p.env.whyFull(room, q, p.q.Launch.Count)
	return p.write(ctx, q, now, func() {
		p.relook = now.Add(p.env.Timing.Relaunch)
		p.Next = p.await
	})
}

// whyFull says who has the room that a request lacks. In a pool that may be hosts which
// wait for runs that this one is none of: when those leave is told, not whose they are.
func (pr *Provisioner) whyFull(room policy.Quota, q lifecycle.Request, needs int) string {
	why := room.Reason(q, needs)
	rules := pr.Hosts.Policy(q.Spec.Pool)
	if room.Limit.Kind == lifecycle.QuotaPool && rules.Reuse != lifecycle.ReuseNone {
		why += fmt.Sprintf("; of its hosts a used one leaves once it was idle for %s", rules.IdleTime)
	}
	return why
}

// LaunchEntry is the entry of the launch that is under way.
func LaunchEntry(q lifecycle.Request, now time.Time) lifecycle.Reservation {
	return lifecycle.Reservation{
		Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Hosts: q.Launch.Count, At: now,
	}
}

package provision

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Launcher makes a launch whose order is written in a request's row: it reserves quota, makes the call, and
// hands out one machine a step to be recorded; then the row is closed by its owner. A crash at any point
// repeats the launch from the beginning: the reservation is the launch's own, the order's token makes the
// repeated call the same call, and a machine that has a record keeps it.
//
// It is plain data, so that an operation which has one can be compared with another.
// The zero value is a launch that another process may have begun.
type Launcher struct {
	// fresh: the launch was intended by this process and not tried yet.
	fresh bool
	// reserved: the pool's maximum has a reservation for it. called: the call was made,
	// or what an earlier one has made was found.
	reserved, called bool
	// Result is what came of the call, and recorded how many of its machines have a record.
	Result   quota.LaunchResult
	recorded int
	// Short is why the call made fewer machines than were ordered; nil: it did not.
	Short *lifecycle.ShortageError
}

func (l Launcher) state() []any {
	return []any{l.fresh, l.reserved, l.called, l.Result.Machines, l.Result.Answered, l.recorded, l.Short != nil}
}

// NewLauncher returns the launcher of an order that was just written, whose call nothing has tried.
func NewLauncher() Launcher { return Launcher{fresh: true} }

// MustReserve reports whether the launch of q needs a reservation that it does not
// have: its pool has a maximum, and the launch is not late.
func (l *Launcher) MustReserve(pr *Provisioner, q lifecycle.Request, now time.Time) bool {
	_, bounded := pr.Quota.MaximumOf(q.Spec.Pool)
	return bounded && !l.reserved && !l.called && now.Before(q.Deadline)
}

// Reserve reserves room in the pool's maximum for the launch of q. If there is none,
// the quota as it was read is returned, and the launch has to be given up: since the
// reservation comes before the call, the call was not made.
func (l *Launcher) Reserve(ctx context.Context, pr *Provisioner, q lifecycle.Request, now time.Time) (policy.Quota, bool, error) {
	limit, _ := pr.Quota.MaximumOf(q.Spec.Pool)
	room, reserved, err := pr.Quota.ReserveLaunch(ctx, limit, q, launchEntry(q, now))
	l.reserved = err == nil && reserved
	return room, l.reserved, err
}

// Call makes the call of the order, or finds what a call before a crash has made. A
// late launch is only looked for. A shortage is no error: see Short.
func (l *Launcher) Call(ctx context.Context, pr *Provisioner, order lifecycle.LaunchOrder, late bool) error {
	result, err := pr.LaunchOrAdopt(ctx, order, l.fresh, late)
	l.fresh, l.Result = false, result
	if err != nil && !errors.As(err, &l.Short) {
		return err
	}
	l.called = true
	return nil
}

// Called reports whether the call was made, or its machines were found.
func (l *Launcher) Called() bool { return l.called }

// Recording reports whether a machine of the launch is still to be recorded.
func (l *Launcher) Recording() bool { return l.recorded < len(l.Result.Machines) }

// Machine is the machine to be recorded next.
func (l *Launcher) Machine() lifecycle.Machine { return l.Result.Machines[l.recorded] }

// Recorded goes on to the next machine.
func (l *Launcher) Recorded() { l.recorded++ }

// launchEntry is the reservation of the launch of q.
func launchEntry(q lifecycle.Request, now time.Time) lifecycle.Reservation {
	return lifecycle.Reservation{
		Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Hosts: q.Launch.Count, At: now,
	}
}

package server

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// untilDeadline is the patience of a call that its own deadline ends sooner.
const untilDeadline = 24 * time.Hour

// errStopping is what calls that wait for hosts are told when controld stops.
var errStopping = &lifecycle.UnavailableError{
	What: "controld is stopping", RetryAfter: time.Second, Err: errors.New("what was asked for goes on; send the same request again"),
}

// drive steps an operation until it is done, fails, its caller leaves or
// controld stops. While a dependency is away, a call that has done nothing yet
// soon says so, since its caller can try elsewhere; one that has begun goes on
// for as long as patience, since its work would go on without it.
func (s *service) drive(ctx context.Context, op fleet.Op, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.handOver, func() { cancel(errStopping) })()
	b := &begun{Op: op}
	err := s.fleet.Drive(ctx, b, s.patience)
	if b.yes && patience > s.patience && ctx.Err() == nil && errors.Is(err, lifecycle.ErrUnavailable) {
		err = s.fleet.Drive(ctx, b, patience)
	}
	return err
}

// begun is an operation that knows whether a step of it went well.
type begun struct {
	fleet.Op
	yes bool
}

func (b *begun) Step(ctx context.Context, now time.Time) (fleet.Progress, error) {
	p, err := b.Op.Step(ctx, now)
	b.yes = b.yes || err == nil
	return p, err
}

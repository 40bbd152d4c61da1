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

// errStopping is the answer to calls that wait for hosts when controld stops.
var errStopping = &lifecycle.UnavailableError{
	What: "controld is stopping", RetryAfter: time.Second, Err: errors.New("what was asked for goes on; send the same request again"),
}

// operation is what a call drives.
type operation interface {
	fleet.Op
	// Begun reports whether it has done something, rather than only read.
	Begun() bool
}

// drive steps an operation until it is done, fails, its caller leaves or controld stops. While a dependency
// is away, a call that has done nothing yet soon says so, since its caller can try elsewhere; one that has
// begun goes on for as long as patience, since its work would go on without it.
func (s *service) drive(ctx context.Context, op operation, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.handOver, func() { cancel(errStopping) })()
	err := s.fleet.Drive(ctx, op, s.patience)
	if op.Begun() && patience > s.patience && ctx.Err() == nil && errors.Is(err, lifecycle.ErrUnavailable) {
		err = s.fleet.Drive(ctx, op, patience)
	}
	return err
}

package op

import (
	"context"
	"errors"
	"time"
)

// Stages runs an operation as a sequence of stages: Next does one step, and sets itself to the stage that
// comes after it. An operation embeds Stages and gets Step from it.
type Stages struct {
	Events Recorder
	Next   func(context.Context, time.Time) (Progress, error)
	// passed are the errors that the operation went past.
	passed []error
}

// Step does one step. The history of what it decided is written where the operation comes to rest. The last
// step returns the errors that the operation went past.
func (s *Stages) Step(ctx context.Context, now time.Time) (Progress, error) {
	s.Events.driver.stepped(now)
	s.Events.Now = now
	progress, err := s.Next(ctx, now)
	if err != nil {
		s.Events.Flush(ctx)
		return progress, err
	}
	if progress = s.Events.pause(ctx, progress, now); progress.Done {
		err = errors.Join(s.passed...)
	}
	return progress, err
}

// Past reports whether a sweep goes on to the next item after err. It does after success, and after an error
// that belongs to the item alone, such as a damaged row: that must not keep the other items from their turn.
// If a dependency is unavailable or ctx has ended, the sweep stops: the rest would fail as well.
func (s *Stages) Past(ctx context.Context, err error) bool {
	if err == nil {
		return true
	}
	if Transient(ctx, err) {
		return false
	}
	s.GoPast(err)
	return true
}

// GoPast keeps an error that the operation went past for its last step.
func (s *Stages) GoPast(err error) { s.passed = append(s.passed, err) }

// Passed are the errors that the operation went past so far.
func (s *Stages) Passed() []error { return s.passed }

// Begun reports whether the operation has had an effect and has not only read.
// Its work then goes on without it.
func (s *Stages) Begun() bool { return s.Events.Effects > 0 }

// Recorder returns the recorder of the operation, for a caller that wants a dry run or every decision.
func (s *Stages) Recorder() *Recorder { return &s.Events }

// Package op holds what the operations of a fleet are made of: steps, the driver
// that takes them, and the recorder of their history.
//
// An operation does its work in small steps. Each step reads, decides and does at most one effect, or the same effect on several hosts, each by
// itself. The progress that matters is in the store. A daemon drives the steps in a loop, the simulator takes them one at
// a time, and a crash between any two of them is finished by a sweep.
package op

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Op is an operation in small steps. Step reads, decides and does at most one effect. After an error an Op
// may be stepped again: the step that failed is repeated.
type Op interface {
	Step(ctx context.Context, now time.Time) (Progress, error)
}

// Stated is an operation that says what it keeps in memory. Two operations of a kind and a demand with equal
// states do the same from there on, given the same answers. The explorer of package sim/explore rests on it.
type Stated interface {
	Op
	// State has every value on which a later step depends, also those of an operation in hand.
	State() []any
}

// StateOf is the state of an operation in hand, nil if there is none. An operation that does
// not say its state stands for itself.
func StateOf(o Op) any {
	if s, ok := o.(Stated); ok {
		return s.State()
	}
	return o
}

// Progress is how far a step has brought its operation.
type Progress struct {
	Done bool
	// Wait is how long there is nothing to do; 0: step again at once.
	Wait time.Duration
}

// Again and Done are the progress of most steps: step again at once, and stop.
var (
	Again = Progress{}
	Done  = Progress{Done: true}
)

// Wait is the progress of a step after which there is nothing to do for d.
func Wait(d time.Duration) Progress { return Progress{Wait: d} }

// Transient reports whether an operation that failed may succeed when it is tried
// again: its dependency is unavailable, or ctx ended. Any other error belongs to
// the one item that was worked on, and the others can go on.
func Transient(ctx context.Context, err error) bool {
	return errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil
}

// writeTries bounds how often Rewrite repeats a change.
const writeTries = 10

// Rewrite changes a row that other replicas write too. do reads the row and writes it changed. It is repeated while
// another replica writes first: do returns lifecycle.ErrConflict, or ErrExists for a new row. what names the row.
func Rewrite(what string, do func() error) error {
	for range writeTries {
		if err := do(); !errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrExists) {
			return err
		}
	}
	return &lifecycle.UnavailableError{What: what, RetryAfter: time.Second, Err: errors.New("too many concurrent writers")}
}

const (
	// PageSize is how many due rows a sweep reads at once.
	PageSize = 100
	// UnavailableAtMost is how many items in a row (requests, hosts of an owner, registrations of a page) may
	// find a dependency unavailable before a sweep leaves the rest. One such item does not hold up the
	// others, and with the dependency away the others are not tried either.
	UnavailableAtMost = 3
	// RepeatLogAfter is how long the same failure of a loop is not logged again.
	RepeatLogAfter = time.Minute
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

// Then has next as the following step.
func (s *Stages) Then(next func(context.Context, time.Time) (Progress, error)) (Progress, error) {
	s.Next = next
	return Again, nil
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

// maxErrorText bounds the text of an error within a reason, in bytes.
const maxErrorText = 600

// OneLine returns the text of an error as part of a sentence: on one line, and not longer than maxErrorText.
func OneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// Package op holds what the operations of a fleet are made of: steps, the driver
// that takes them, and the recorder of their history.
//
// An operation does its work in small steps. Each step reads, decides and does at most one effect, and the
// progress that matters is in the store. A daemon drives the steps in a loop, the simulator takes them one at
// a time, and a crash between any two of them is finished by a sweep.
package op

import (
	"context"
	"errors"
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

// Package clock decides whether the clock of a replica may be used to judge hosts.
package clock

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// MaxOffset is how far a replica's clock may be from that of the store. Deadlines are minutes and hours, and a host counts as silent after a
// minute. Synchronized clocks are within milliseconds, so one that is farther away is wrong and not late.
const MaxOffset = time.Minute

// Check returns a *Error if a clock is farther from the store's than MaxOffset. offset is what has to be added to it.
func Check(offset time.Duration) error {
	if offset.Abs() <= MaxOffset {
		return nil
	}
	return &Error{Offset: offset}
}

// Error says that the clock of this machine is wrong. It is a lifecycle.ErrUnavailable: another replica may be right, and this one again
// once its clock is set.
type Error struct{ Offset time.Duration }

func (e *Error) Error() string {
	where := "behind"
	if e.Offset < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("the clock of this machine is %s %s that of AWS, so no deadline can be judged by it: synchronize it, for instance with chrony",
		e.Offset.Abs().Round(time.Second), where)
}

// Unwrap is lifecycle.ErrUnavailable.
func (e *Error) Unwrap() error { return lifecycle.ErrUnavailable }

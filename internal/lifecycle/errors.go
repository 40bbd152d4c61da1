package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// The classes of error that adapters return and callers test with errors.Is.
var (
	// ErrNotFound: there is no such row, host or runner.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the condition of a write did not hold; another writer was faster.
	ErrConflict = errors.New("lost the race")
	// ErrExists: there is such a row already.
	ErrExists = errors.New("already exists")
	// ErrUnavailable: a dependency did not answer or refused for now. The call
	// may have taken effect. Try again later.
	ErrUnavailable = errors.New("unavailable")
	// ErrRefused: a dependency refused, and will refuse again until its cause is
	// removed. The text names the cause and is fit for callers.
	ErrRefused = errors.New("refused")
	// ErrBusy: GitHub refuses to delete a runner that runs a job.
	ErrBusy = errors.New("busy")
	// ErrPageToken: PageOf.After is not a token that this listing gave.
	ErrPageToken = errors.New("not a page token of this listing")
)

// NotFound is ErrNotFound in whole words, which need no "not found" behind them.
func NotFound(format string, args ...any) error {
	return &notFoundError{fmt.Sprintf(format, args...)}
}

type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

func (e *notFoundError) Is(target error) bool { return target == ErrNotFound }

// ShortageError says that the cloud gave fewer machines than were ordered.
type ShortageError struct {
	Ordered, Got int
	// Reason is a sentence, such as "no c6i.large in zone local-a".
	Reason string
}

func (e *ShortageError) Error() string {
	return fmt.Sprintf("launch %s: got %d: %s", plural.Of(e.Ordered, "host", "hosts"), e.Got, e.Reason)
}

// TransitionError is a transition that the table does not allow.
type TransitionError struct {
	HostKey string
	From    string
	Action  Action
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("host %s: no transition %s from %s", e.HostKey, e.Action, e.From)
}

// UnavailableError is ErrUnavailable with the time after which to try again.
type UnavailableError struct {
	What       string
	RetryAfter time.Duration
	Err        error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s: %v", e.What, e.Err)
}

// Is makes every UnavailableError an ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

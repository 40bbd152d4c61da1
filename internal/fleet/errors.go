package fleet

import (
	"errors"
	"fmt"
	"time"
)

// ErrSpecDiffers means that the request id is taken by a request that asks for
// something else.
var ErrSpecDiffers = errors.New("the same request_id was used with another body")

// InvalidError names a field of a request and the rule that it broke.
type InvalidError struct {
	Field, Rule string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Rule) }

// ShortError says that a request did not get its hosts by its deadline.
type ShortError struct {
	RequestID string
	Ready     int
	Wanted    int
	Minimum   int
	// Why says how many were ready and what was missing.
	Why string
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("request %s: %s; at least %d are needed", e.RequestID, e.Why, e.Minimum)
}

// ReleasedError says that the run was released, which ends the requests that
// were made for it before.
type ReleasedError struct {
	RunID string
}

func (e *ReleasedError) Error() string {
	return fmt.Sprintf("run %s was released after this request was made; hosts for it now need a new request", e.RunID)
}

// HeldError says that an operator's hold forbids an order.
type HeldError struct {
	InstanceID string
	Until      time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("instance %s is held by an operator until %s; take the hold away first",
		e.InstanceID, e.Until.UTC().Format(time.RFC3339))
}

// StateError says that an order does not fit the state of its host.
type StateError struct {
	InstanceID, State, Order string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("instance %s is %s: cannot %s it", e.InstanceID, e.State, e.Order)
}

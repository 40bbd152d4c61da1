package hosts

import (
	"fmt"
	"time"
)

// InvalidError names a field of a request and the rule that it broke.
type InvalidError struct {
	Field, Rule string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Rule) }

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

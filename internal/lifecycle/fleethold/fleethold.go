// Package fleethold has an operator's hold on the whole fleet.
package fleethold

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

const (
	// Look is how often a host that only the fleet's hold keeps is looked at, and so the delay
	// after which it notices that the hold was taken away. Each look costs a read of the hold
	// and a write of the record.
	Look = time.Minute
	// margin is how much longer than the fleet's hold the mark on a record lasts: its agent ends the
	// host when the mark does, and a hold that is made longer in its last minute must reach it before.
	margin = 2 * Look
)

// Hold is an operator's hold on the whole fleet: while it is in force no
// controld ends anything. It is one row, written under its version.
type Hold struct {
	// Until is when it ends; zero: there is none.
	Until time.Time `json:"until,omitzero"`
	// SetAt, By and Reason are of the last change of it.
	SetAt   time.Time `json:"setAt,omitzero"`
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Version int64     `json:"version"`
}

// InForce reports whether the hold forbids to end anything.
func (h Hold) InForce(now time.Time) bool { return now.Before(h.Until) }

// Mark is what the Hold of a host's record is while the hold keeps the host.
func (h Hold) Mark() time.Time { return h.Until.Add(margin) }

// String describes a hold that is in force: until when, set by which operator and why.
func (h Hold) String() string {
	s := "the fleet is held until " + h.Until.UTC().Format(time.RFC3339)
	if h.By != "" {
		s += " by " + h.By
	}
	if h.Reason != "" {
		s += fmt.Sprintf(" (%s)", line.First(h.Reason))
	}
	return s
}

// Error says that the hold on the whole fleet forbids to end a host.
type Error struct {
	Hold Hold
}

func (e *Error) Error() string {
	return e.Hold.String() + ": nothing is ended; take the hold away first"
}

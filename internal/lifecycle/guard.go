package lifecycle

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

// FleetHold is an operator's hold on the whole fleet: while it is in force no
// controld ends anything. It is one row, written under its version.
type FleetHold struct {
	// Until is when it ends; zero: there is none.
	Until time.Time `json:"until,omitzero"`
	// SetAt, By and Reason are of the last change of it.
	SetAt   time.Time `json:"setAt,omitzero"`
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Version int64     `json:"version"`
}

// InForce reports whether the hold forbids to end anything.
func (h FleetHold) InForce(now time.Time) bool { return now.Before(h.Until) }

// String describes a hold that is in force: until when, set by which operator and why.
func (h FleetHold) String() string {
	s := "the fleet is held until " + h.Until.UTC().Format(time.RFC3339)
	if h.By != "" {
		s += " by " + h.By
	}
	if h.Reason != "" {
		s += fmt.Sprintf(" (%s)", line.First(h.Reason))
	}
	return s
}

const (
	// fleetHoldLook is how often a host that only the fleet's hold keeps is looked
	// at, and so the delay after which it notices that the hold was taken away. Each
	// look costs a read of the hold and a write of the record.
	fleetHoldLook = time.Minute
	// fleetHoldMargin is how much longer than the fleet's hold the mark on a record lasts: its agent ends the
	// host when the mark does, and a hold that is made longer in its last minute must reach it before.
	fleetHoldMargin = 2 * fleetHoldLook
)

// Mark is what Record.Hold is while the hold keeps a host.
func (h FleetHold) Mark() time.Time { return h.Until.Add(fleetHoldMargin) }

// Ends reports whether the decision ends a machine. If EC2 says that the machine is
// gone already, the decision only records that.
func (d Decision) Ends() bool {
	return d.Action == ActionTerminate && !d.Gone || d.Action == ActionEndMachine
}

// withoutFleetMark removes the fleet hold's mark from the record when the hold itself
// is known, since the mark then adds nothing.
func (v decider) withoutFleetMark() decider {
	if v.FleetHold != nil && v.Record.FleetHeld {
		v.Record.Hold = time.Time{}
	}
	return v
}

// underFleetHold turns a decision that ends the host into a mark on its record, by
// which the host's agent does not end it either. The mark goes with its cause.
func (v decider) underFleetHold(d Decision) Decision {
	switch h := v.FleetHold; {
	case h == nil:
		return d
	case h.InForce(v.now) && (d.Ends() || v.soonFree(*h)):
		return v.holdBack(*h, d)
	case v.Record.FleetHeld && d.Action == ActionKeep:
		d := act(ActionHold, holdRemoved)
		d.CheckAt = v.now
		return d
	}
	return d
}

// soonFree reports whether an operator's hold on this host ends before the fleet's
// does, and so soon that the host's agent might end it before the next look.
func (v decider) soonFree(h FleetHold) bool {
	return v.Record.Held(v.now) && !v.Record.FleetHeld && v.Record.Hold.Before(h.Until) &&
		!v.now.Before(v.Record.Hold.Add(-fleetHoldLook))
}

func (v decider) holdBack(h FleetHold, d Decision) Decision {
	why := v.heldByFleet(h, d)
	look := earliest(h.Until, v.now.Add(fleetHoldLook))
	if v.Record.FleetHeld && v.Record.Hold.Equal(h.Mark()) {
		return keep(look, why)
	}
	marked := act(ActionHold, why)
	marked.Hold, marked.CheckAt = h.Mark(), look
	return marked
}

// mark carries out an ActionHold: it sets the mark of the fleet's hold, or takes it away.
func (r *Record) mark(d Decision, now time.Time) {
	r.Hold, r.FleetHeld = d.Hold, !d.Hold.IsZero()
	r.DueAt = latest(d.CheckAt, now)
}

// unmark takes away the mark of the fleet's hold. An operator's hold on the host stays.
func (r *Record) unmark() {
	if r.FleetHeld {
		r.Hold, r.FleetHeld = time.Time{}, false
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// FleetHeldError says that the hold on the whole fleet forbids to end a host.
type FleetHeldError struct {
	Hold FleetHold
}

func (e *FleetHeldError) Error() string {
	return e.Hold.String() + ": nothing is ended; take the hold away first"
}

package lifecycle

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
)

// Ends reports whether the decision ends a machine. If EC2 says that the machine is
// gone already, the decision only records that.
func (d Decision) Ends() bool {
	return d.Action == ActionTerminate && !d.Gone || d.Action == ActionEndMachine
}

// interferes reports whether the decision has the machine of a host stopped that a run could claim, or its root volume replaced: what an operator who
// holds the fleet wants to look at would be gone.
func (d Decision) interferes(r Record) bool {
	return d.Action == ActionStop && r.Pooled() || d.Action == ActionReset
}

// AsksForHold reports whether a decision about the host depends on the hold on the whole fleet.
func (d Decision) AsksForHold(r Record, now time.Time) bool {
	return d.Ends() || d.interferes(r) || r.FleetHeld || r.Held(now) || d.overdue(r, now)
}

// overdue reports whether a host past its deadline is kept, and not by a hold of its own. Its agent may not know why, as when the host
// could not be heard, or the cause may be over before the next look, as when it is busy. Then the agent ends the host.
func (d Decision) overdue(r Record, now time.Time) bool {
	return d.Action == ActionKeep && reached(r.Threshold, now) && (r.FleetHeld || !r.Held(now))
}

// withoutFleetMark removes the fleet hold's mark from the record when the hold itself
// is known, since the mark then adds nothing.
func (v *decider) withoutFleetMark() *decider {
	if v.FleetHold == nil || !v.Record.FleetHeld {
		return v
	}
	w := *v
	w.Record.Hold = time.Time{}
	return &w
}

// underFleetHold turns a decision that ends, stops or resets the host, or keeps it past its deadline, into a mark on its
// record, by which the host's agent does not end it either. The mark goes with its cause.
func (v *decider) underFleetHold(d Decision) Decision {
	switch h := v.FleetHold; {
	case h == nil:
		return d
	case h.InForce(v.now) && (d.Ends() || d.interferes(v.Record) || d.overdue(v.Record, v.now) || v.soonFree(*h)):
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
func (v *decider) soonFree(h fleethold.Hold) bool {
	return v.Record.Held(v.now) && !v.Record.FleetHeld && v.Record.Hold.Before(h.Until) &&
		!v.now.Before(v.Record.Hold.Add(-fleethold.Look))
}

func (v *decider) holdBack(h fleethold.Hold, d Decision) Decision {
	why := v.heldByFleet(h, d)
	look := earliest(h.Until, v.now.Add(fleethold.Look))
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

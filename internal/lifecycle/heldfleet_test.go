package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
)

// A host of a held fleet is past its deadline, and is kept for a cause that its agent does not know, or that may be over before the next
// look. Then the agent ends the host, unless the record bears the mark of the fleet's hold.
func TestAHostOfAHeldFleetBearsTheMarkPastItsDeadline(t *testing.T) {
	restoredAt := func(f *lifecycle.Facts) { f.Report, f.Record.RestoredAt, f.Record.Retiring = later(), now, true }
	for name, tt := range map[string]struct {
		of     scene
		change func(*lifecycle.Facts)
		code   lifecycle.ReasonCode
	}{
		"not heard yet":       {scene{host: "created", answer: "none", deadline: "overrun", beat: "unheard"}, nil, lifecycle.ReasonNotHeardYet},
		"many are silent":     {scene{host: "releasing", answer: "seen", deadline: "reached", beat: "mass"}, nil, lifecycle.ReasonManySilent},
		"a restored record":   {scene{host: "running", answer: "seen", deadline: "overrun"}, restoredAt, lifecycle.ReasonRecordRestored},
		"busy in the pool":    {scene{host: "pooled", answer: "seen", busy: "busy", beat: "fresh", deadline: "reached"}, nil, lifecycle.ReasonBusyWhilePooled},
		"busy while starting": {scene{host: "created", answer: "seen", busy: "busy", beat: "fresh", deadline: "reached"}, nil, lifecycle.ReasonBusyBeforeReady},
		"its report was lost": {scene{host: "releasing", answer: "none", deadline: "reached"}, nil, lifecycle.ReasonManySilent},
	} {
		t.Run(name, func(t *testing.T) {
			facts, policy := tt.of.facts()
			if tt.change != nil {
				tt.change(&facts)
			}
			if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionKeep || d.Code != tt.code || !d.AsksForHold(facts.Record, now) {
				t.Fatalf("%s, asks for the hold: %t", outcome(d), d.AsksForHold(facts.Record, now))
			}
			facts.FleetHold = &fleethold.Hold{Until: now.Add(time.Hour)}
			d := lifecycle.Decide(facts, now, policy)
			if facts.Record = marked(t, facts.Record, d, policy); !facts.Record.FleetHeld || !facts.Record.Hold.Equal(facts.FleetHold.Mark()) {
				t.Fatalf("%s: held until %s, for the fleet %t", outcome(d), facts.Record.Hold, facts.Record.FleetHeld)
			}
			if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionKeep || d.Code != lifecycle.ReasonFleetHeld || d.CheckAt.After(now.Add(fleethold.Look)) {
				t.Errorf("with the mark: %s, looked at again at %s", outcome(d), d.CheckAt)
			}
			facts.FleetHold = &fleethold.Hold{}
			d = lifecycle.Decide(facts, now, policy)
			if r := marked(t, facts.Record, d, policy); r.FleetHeld || r.Held(now) || !d.CheckAt.Equal(now) || !r.DueAt.Equal(now) {
				t.Errorf("after the hold: held until %s, for the fleet %t, due at %s", r.Hold, r.FleetHeld, r.DueAt)
			}
		})
	}
}

// marked is the record after a decision about the fleet's hold.
func marked(t *testing.T, r lifecycle.Record, d lifecycle.Decision, p lifecycle.Policy) lifecycle.Record {
	t.Helper()
	n, err := lifecycle.Apply(r, d, now, p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A host's own hold may last longer than the fleet's, and stays.
func TestTheMarkOfTheFleetsHoldReplacesNoOtherHold(t *testing.T) {
	facts, policy := scene{host: "created", answer: "none", deadline: "overrun", beat: "unheard", hold: "held"}.facts()
	facts.FleetHold = &fleethold.Hold{Until: now.Add(time.Minute)}
	if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionKeep || d.Code != lifecycle.ReasonHeld {
		t.Errorf("%s, want that its own hold keeps it", outcome(d))
	}
}

// A hold of its own that ends before the fleet's is followed by the mark a look before it ends, and not earlier: its agent ends the host at that time. A
// host without a hold needs no mark while nothing ends it.
func TestTheMarkFollowsAHoldThatEndsFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		own, fleet time.Duration
		marked     bool
	}{
		"it ends a look from now":   {fleethold.Look, time.Hour, true},
		"it ends soon":              {time.Second, time.Hour, true},
		"it ends later":             {fleethold.Look + 1, time.Hour, false},
		"it ends with the fleet's":  {time.Second, time.Second, false},
		"it ends after the fleet's": {2 * time.Second, time.Second, false},
		"there is none":             {0, time.Hour, false},
	} {
		facts, policy := scene{host: "running", answer: "seen", beat: "fresh", deadline: "ahead"}.facts()
		facts.FleetHold = &fleethold.Hold{Until: now.Add(tt.fleet)}
		if tt.own > 0 {
			facts.Record.Hold = now.Add(tt.own)
		}
		d := lifecycle.Decide(facts, now, policy)
		if (d.Action == lifecycle.ActionHold) != tt.marked || tt.marked && d.Reason != facts.FleetHold.String() {
			t.Errorf("%s: %s: %s", name, outcome(d), d.Reason)
		}
		if !tt.marked {
			continue
		}
		if r := marked(t, facts.Record, d, policy); !r.FleetHeld || !r.Hold.Equal(facts.FleetHold.Mark()) || !r.DueAt.Equal(now.Add(fleethold.Look)) {
			t.Errorf("%s: held until %s, for the fleet %t, due at %s", name, r.Hold, r.FleetHeld, r.DueAt)
		}
	}
}

// The mark on a host that would be ended says so, is as long as the fleet's hold, and goes with it: the host ends at once.
func TestTheMarkIsAsLongAsTheFleetsHold(t *testing.T) {
	facts, policy := scene{host: "running", answer: "seen", beat: "fresh", deadline: "overrun"}.facts()
	for _, until := range []time.Duration{time.Hour, 2 * time.Hour, time.Minute} {
		facts.FleetHold = &fleethold.Hold{Until: now.Add(until)}
		d := lifecycle.Decide(facts, now, policy)
		if want := facts.FleetHold.String() + "; else it would be ended: its maximum runtime of 4h0m0s is over"; d.Reason != want {
			t.Errorf("%q, want %q", d.Reason, want)
		}
		if facts.Record = marked(t, facts.Record, d, policy); !facts.Record.FleetHeld || !facts.Record.Hold.Equal(facts.FleetHold.Mark()) {
			t.Errorf("held for %s: %s until %s", until, outcome(d), facts.Record.Hold)
		}
	}
	unknown := facts
	if unknown.FleetHold = nil; lifecycle.Decide(unknown, now, policy).Code != lifecycle.ReasonHeld {
		t.Error("it is ended while the hold is not known")
	}
	facts.FleetHold = &fleethold.Hold{}
	if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate {
		t.Errorf("after the hold: %s", outcome(d))
	}
}

// A change of state takes the mark of the fleet's hold away, and leaves an operator's hold on the host.
func TestAChangeOfStateTakesTheFleetsMark(t *testing.T) {
	until := now.Add(time.Hour)
	for _, ofFleet := range []bool{true, false} {
		f, p := idleOver(), stoppedPolicy()
		f.Record.Hold, f.Record.FleetHeld = until, ofFleet
		if r := marked(t, f.Record, lifecycle.Decision{Action: lifecycle.ActionStop}, p); r.FleetHeld || r.Hold.IsZero() != ofFleet {
			t.Errorf("stopped: held until %s, for the fleet %t", r.Hold, r.FleetHeld)
		}
		f.Record.State, f.Record.PooledAt, f.Record.Threshold = lifecycle.StateTerminated, time.Time{}, time.Time{}
		if r := marked(t, f.Record, lifecycle.Decision{Action: lifecycle.ActionForget}, p); r.FleetHeld || r.Hold.IsZero() != ofFleet {
			t.Errorf("forgotten: held until %s, for the fleet %t", r.Hold, r.FleetHeld)
		}
	}
}

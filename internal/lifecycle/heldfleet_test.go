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
			if r := marked(t, facts.Record, lifecycle.Decide(facts, now, policy), policy); r.FleetHeld || r.Held(now) {
				t.Error("the mark is still there after the hold")
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

package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// An older state of the table is restored. The record is of an earlier assignment, or uses the number of the host's
// assignment for another run. A job that runs may end; then the host ends itself, and signals nothing before.
func TestARestoredRecordOfAnotherAssignment(t *testing.T) {
	for name, restore := range map[string]func(w *world) lifecycle.Record{
		"before the claim": func(w *world) lifecycle.Record { return w.older[len(w.older)-2] },
		"claimed by another run": func(w *world) lifecycle.Record {
			r := *w.record
			r.RunID, r.State, r.Version = "another", lifecycle.StateClaimed, r.Version+1
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			resting(w)
			a := newAgent(t, w)
			settle(t, w, a, lifecycle.SignalRemoveRegOK)
			w.claim("second")
			settle(t, w, a, lifecycle.SignalRegOK)
			w.running()
			passes(t, w, a, 10*time.Second)
			w.observed.Busy = true
			r := restore(w)
			w.record, w.effects = &r, nil
			if passes(t, w, a, 20*time.Minute) {
				t.Fatalf("the host ended itself under a job: %v", w.effects)
			}
			if w.report.Assignment == r.Assignment && w.report.Signal != "" {
				t.Errorf("it signals %s for another run", w.report.Signal)
			}
			w.observed.Busy = false
			if !passes(t, w, a, 5*time.Minute) || !slices.Contains(w.effects, "power off") {
				t.Errorf("the host does not end itself after its job: %v", w.effects)
			}
		})
	}
}

// A restored record of the assignment that the host has is obeyed, though its version is lower: the host goes on.
func TestARestoredRecordOfTheSameAssignment(t *testing.T) {
	w := newWorld()
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	before := *w.record
	w.running()
	passes(t, w, a, 10*time.Second)
	w.record, w.effects = &before, nil
	if passes(t, w, a, 2*time.Minute) || w.report.Signal != lifecycle.SignalRegOK {
		t.Errorf("signal %q, effects %v", w.report.Signal, w.effects)
	}
	w.record = &before
	w.running()
	w.release("remove")
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
}

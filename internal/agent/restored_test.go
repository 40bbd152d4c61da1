package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
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

// An agent that was started again and has lost its memory obeys a restored record. What is on the host still shows that it has
// served a later assignment, and the report says so.
func TestARestoredRecordAndALostMemory(t *testing.T) {
	w := newWorld()
	resting(w)
	settle(t, w, newAgent(t, w), lifecycle.SignalRemoveRegOK)
	old := *w.record
	w.claim("second")
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	if w.report.Served != 0 {
		t.Errorf("with its newest record it has served %d", w.report.Served)
	}
	w.record, w.disk.memory = &old, agent.Memory{}
	passes(t, w, newAgent(t, w), 10*time.Second)
	if served := w.observed.Registered.Assignment; w.report.Served != served || served <= old.Assignment || w.report.Newest() != served {
		t.Errorf("of assignment %d it reports that it has served %d, want %d", w.report.Assignment, w.report.Served, served)
	}
}

// A restored record may use the number of an assignment again that the host was cleaned in. What was registered since is not clean.
func TestACleanUpBeforeTheLastRegistration(t *testing.T) {
	w := newWorld()
	resting(w)
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	w.effects = nil
	passes(t, w, a, 10*time.Second)
	if slices.Contains(w.effects, "clean") {
		t.Fatalf("a clean host is cleaned again: %v", w.effects)
	}
	w.observed.Removed = w.observed.Cleaned
	w.observed.Removed.At = w.observed.Cleaned.At.Add(time.Second)
	passes(t, w, a, 10*time.Second)
	if !slices.Contains(w.effects, "clean") || w.observed.Cleaned.At.Before(w.observed.Removed.At) {
		t.Errorf("it is not cleaned again: %v", w.effects)
	}
}

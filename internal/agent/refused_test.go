package agent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// refusedJob has the hook refuse a job and not end its worker.
func (w *world) refusedJob(worker int) {
	w.observed.Busy, w.observed.Refused, w.observed.RefusedWorker = true, "run-9 of evil/app", worker
}

// The agent ends a worker that outlives the refusal of its job, and has the host listen again for its run, which is not over.
func TestWorkerThatOutlivesItsRefusalIsEnded(t *testing.T) {
	w := newWorld()
	serving(w)
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	w.effects = nil
	w.refusedJob(42)
	passes(t, w, a, 2*time.Second)
	if len(w.effects) > 0 {
		t.Fatalf("while the hook still may end it: %q", w.effects)
	}
	passes(t, w, a, 10*time.Second)
	if diff := cmp.Diff([]string{"end refused", "listen"}, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	settle(t, w, a, lifecycle.SignalRegOK)
}

// Each refused worker has its own time: the second is not ended at once because the first was seen long ago.
func TestEachRefusedWorkerHasItsTime(t *testing.T) {
	w := newWorld()
	serving(w)
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	w.effects = nil
	for worker := range 10 { // each ended by the hook
		w.refusedJob(worker + 1)
		passes(t, w, a, 2*time.Second)
	}
	if len(w.effects) > 0 {
		t.Errorf("effects %q", w.effects)
	}
}

// A refusal that is over, or that was of another worker, does not touch a job that was let in.
func TestJobBesideAnOldRefusalGoesOn(t *testing.T) {
	w := newWorld()
	serving(w)
	a := newAgent(t, w)
	w.refusedJob(42)
	passes(t, w, a, time.Second)
	w.runsItsJob()
	w.observed.RefusedWorker = 0
	w.effects = nil
	passes(t, w, a, time.Minute)
	if len(w.effects) > 0 || !w.report.Busy {
		t.Errorf("effects %q, report %+v", w.effects, w.report)
	}
}

// The end does not wait for a record, and a released host ends a refused worker, too.
func TestRefusedWorkerIsEndedWhateverTheRecord(t *testing.T) {
	for name, edits := range map[string][]edit{
		"no record": {func(f *agent.Facts) { f.Record = nil }}, "released": {released, disallowed}, "running": nil, "pooled": {pooled, disallowed},
	} {
		d := agent.Decide(facts(append(edits, refusedWorker(4*time.Second))...), start)
		if d.Effect != agent.EffectEndRefused {
			t.Errorf("%s: %+v", name, d)
		}
		d = agent.Decide(facts(append(edits, refusedWorker(time.Second))...), start)
		if d.Effect != agent.EffectNone || !d.RecheckAt.Equal(start.Add(2*time.Second)) {
			t.Errorf("%s, soon after the refusal: %+v", name, d)
		}
	}
}

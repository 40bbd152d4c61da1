package agent_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// pooledHost is a clean host that waits in the pool.
func pooledHost(t *testing.T) (*world, *agent.Agent) {
	t.Helper()
	w, a := jobHost(t)
	w.release("")
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	w.pool()
	w.record.Threshold = w.storeNow().Add(time.Hour)
	passes(t, w, a, 5*time.Second)
	return w, a
}

// sees steps the agent until it has read its record once more, and returns how long that takes.
func sees(t *testing.T, w *world, a *agent.Agent) time.Duration {
	t.Helper()
	began, before := w.now(), w.reads
	steps(t, w, a, func() bool { return w.reads > before })
	return w.now().Sub(began)
}

// TestARestingHostReadsSeldom: every 2 s while it rests, every 500 ms before and after.
func TestARestingHostReadsSeldom(t *testing.T) {
	w, a := pooledHost(t)
	for _, phase := range []struct {
		name         string
		change       func(r *lifecycle.Record)
		within       time.Duration // it sees the change
		fewest, most int           // reads in a minute
	}{
		{"awake", func(*lifecycle.Record) {}, 550 * time.Millisecond, 110, 132},
		{"resting", func(r *lifecycle.Record) { r.RestingAt = w.storeNow() }, 550 * time.Millisecond, 27, 33},
		{"woken", func(r *lifecycle.Record) { r.RestingAt = time.Time{} }, 2200 * time.Millisecond, 110, 132},
		{"resting again", func(r *lifecycle.Record) { r.RestingAt = w.storeNow() }, 550 * time.Millisecond, 27, 33},
	} {
		w.change(phase.change)
		if took := sees(t, w, a); took > phase.within {
			t.Errorf("%s: seen after %s, want at most %s", phase.name, took, phase.within)
		}
		before := w.reads
		passes(t, w, a, time.Minute)
		if n := w.reads - before; n < phase.fewest || n > phase.most {
			t.Errorf("%s: %d reads in a minute, want %d to %d", phase.name, n, phase.fewest, phase.most)
		}
	}
	w.claimForJob("acme")
	w.record.RestingAt = time.Time{}
	if took := sees(t, w, a); took > 2200*time.Millisecond {
		t.Errorf("the claim was seen after %s", took)
	}
	before := w.reads
	passes(t, w, a, 10*time.Second)
	if n := w.reads - before; n < 18 {
		t.Errorf("%d reads in 10 s after the claim", n)
	}
}

// TestAHostThatIsStartedWaitsForItsRecord: its machine was stopped for longer than the deadline that the agent read last. After the boot it
// does not go by that, also while the store does not answer yet, and serves the run that it was started for.
func TestAHostThatIsStartedWaitsForItsRecord(t *testing.T) {
	w, a := pooledHost(t)
	passes(t, w, a, 5*time.Second)
	w.sleepUntil(w.now().Add(20 * time.Hour))
	w.observed.BootID, w.observed.Prepared, w.away = "boot-2", agent.Progress{}, true
	b := newAgent(t, w)
	if passes(t, w, b, time.Minute) {
		t.Fatalf("it ended itself: %s", w.poweredOff)
	}
	w.away = false
	w.claimForJob("acme")
	w.record.Threshold = w.storeNow().Add(10 * time.Minute)
	settle(t, w, b, lifecycle.SignalRegOK)
	if w.report.Assignment != w.record.Assignment {
		t.Errorf("it reports for assignment %d, want %d", w.report.Assignment, w.record.Assignment)
	}
}

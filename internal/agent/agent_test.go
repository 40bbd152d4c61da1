package agent_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func newAgent(t *testing.T, w *world) *agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Options{
		HostKey: "i-1", Store: w, Host: w, State: &w.disk, Version: "test", Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// steps makes steps until done says so, or the host is off; it fails the test
// after a day of the world.
func steps(t *testing.T, w *world, a *agent.Agent, done func() bool) (over bool) {
	t.Helper()
	for end := w.now().Add(24 * time.Hour); w.now().Before(end); {
		next, over := a.Step(t.Context(), w.now())
		if over || done() {
			return over
		}
		w.sleepUntil(next)
	}
	t.Fatalf("not within a day; record %+v, report %+v, observed %+v", w.record, w.report, w.observed)
	return false
}

// settle steps the agent until it answers the record's assignment with want.
func settle(t *testing.T, w *world, a *agent.Agent, want lifecycle.Signal) {
	t.Helper()
	over := steps(t, w, a, func() bool { return w.answered(want) })
	if over {
		t.Fatalf("powered off while waiting for %s: %s", want, w.poweredOff)
	}
}

func (w *world) answered(want lifecycle.Signal) bool {
	return w.report.Signal == want && w.report.Assignment == w.record.Assignment
}

// passes steps the agent for a while.
func passes(t *testing.T, w *world, a *agent.Agent, d time.Duration) (over bool) {
	t.Helper()
	end := w.now().Add(d)
	return steps(t, w, a, func() bool { return !w.now().Before(end) })
}

func TestNewRefusesHalfAnAgent(t *testing.T) {
	w := newWorld()
	for name, o := range map[string]agent.Options{
		"no host key": {Store: w, Host: w, State: &w.disk},
		"no store":    {HostKey: "i-1", Host: w, State: &w.disk},
		"no host":     {HostKey: "i-1", Store: w, State: &w.disk},
		"no state":    {HostKey: "i-1", Store: w, Host: w},
	} {
		if _, err := agent.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// advance is what controld does about the host: it takes each step of a life
// when the last one is answered, and ends the host after its second run.
func (w *world) advance() {
	if w.advanceStandby() {
		return
	}
	switch r := w.record; {
	case (r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed) && w.answered(lifecycle.SignalRegOK):
		w.running()
	case r.State == lifecycle.StateRunning && r.JobsOf != "" && w.observed.Jobs == 0:
		w.runsItsJob()
		w.jobEnds()
	case r.State == lifecycle.StateRunning && r.JobsOf != "":
		if w.report.Assignment == r.Assignment && w.report.Jobs == 1 && !w.report.Busy {
			w.release("")
		}
	case r.State == lifecycle.StateRunning && w.now().Sub(r.Threshold.Add(-r.MaxRuntime)) > 10*time.Second:
		w.release("remove-" + r.RunID)
	case r.Releasing() && w.answered(lifecycle.SignalRemoveRegOK):
		w.pool()
	case r.Pooled() && r.Assignment == 2 && w.jobsOf != "":
		w.claimForJob(w.jobsOf)
	case r.Pooled() && r.Assignment == 2:
		w.claim("run-2")
	case r.Pooled():
		w.terminate()
	}
}

// live runs a whole life, with a new agent after every crash, and returns how
// many calls it took. It fails the test when it does not come to its end.
func live(t *testing.T, w *world) (calls int) {
	t.Helper()
	w.disk.crash = w.crash
	a := newAgent(t, w)
	for end := w.now().Add(30 * time.Minute); w.now().Before(end); {
		next, over, crashed := stepOrCrash(t, w, a)
		if over {
			return w.calls
		}
		if crashed {
			a = newAgent(t, w)
			continue
		}
		w.sleepUntil(next)
		w.advance()
	}
	t.Fatalf("the life did not end; effects %v, record %+v, report %+v", w.effects, w.record, w.report)
	return 0
}

func stepOrCrash(t *testing.T, w *world, a *agent.Agent) (next time.Time, over, crashed bool) {
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !errors.Is(err, errCrash) {
				panic(r)
			}
			crashed = true
		}
	}()
	next, over = a.Step(context.WithoutCancel(t.Context()), w.now())
	return next, over, false
}

// worldFor is a world whose host serves a run and then one job of the scope, or
// without a scope two runs.
func worldFor(scope string) *world {
	w := newWorld()
	w.jobsOf = scope
	return w
}

func TestWholeLife(t *testing.T) {
	w := newWorld()
	live(t, w)
	want := []string{
		"prepare", "allow run-1", "register run-1", "listen",
		"deregister remove-run-1", "allow ", "stop", "clean",
		"allow run-2", "register run-2", "listen",
		"deregister remove-run-2", "allow ", "stop", "clean",
		"power off",
	}
	if diff := cmp.Diff(want, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// A crash after any call to the outside, whether or not its effect was seen,
// changes nothing but time.
func TestCrashAtEveryCall(t *testing.T) {
	for _, scope := range []string{"", "acme"} {
		n := live(t, worldFor(scope))
		for k := 1; k <= n; k++ {
			w := worldFor(scope)
			w.crashAt = k
			live(t, w)
			if !w.crashed {
				t.Fatalf("no crash at call %d", k)
			}
			if w.poweredOff != "its record is terminated: idle until its threshold" {
				t.Errorf("jobs of %q, crash at call %d: powered off because %s", scope, k, w.poweredOff)
			}
		}
	}
}

// A call that fails once, whichever it is, changes nothing but time.
func TestFailureOfEveryCall(t *testing.T) {
	for _, scope := range []string{"", "acme"} {
		n := live(t, worldFor(scope))
		for k := 1; k <= n; k++ {
			w := worldFor(scope)
			w.failAt = k
			live(t, w)
			if w.poweredOff != "its record is terminated: idle until its threshold" {
				t.Errorf("jobs of %q, failure of call %d: powered off because %s", scope, k, w.poweredOff)
			}
		}
	}
}

// Reads that go back in time, all of them, change nothing but time.
func TestStaleReads(t *testing.T) {
	w := newWorld()
	w.stale = true
	live(t, w)
	if w.poweredOff != "its record is terminated: idle until its threshold" {
		t.Errorf("powered off because %s", w.poweredOff)
	}
}

package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// runsItsJob is a runner that takes a job; jobEnds is its end, with which an
// ephemeral runner takes its configuration away and exits.
func (w *world) runsItsJob() { w.observed.Busy, w.observed.Jobs = true, 1 }

func (w *world) jobEnds() {
	w.observed.Busy, w.observed.Registration = false, false
	w.observed.Listener.Phase, w.observed.Listener.Code, w.observed.Listener.At = agent.ListenerExited, agent.CodeDone, w.now()
}

// jobHost is a pooled host that was claimed for one job of acme and listens.
func jobHost(t *testing.T) (*world, *agent.Agent) {
	t.Helper()
	w := newWorld()
	resting(w)
	w.claimForJob("acme")
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	w.running()
	passes(t, w, a, 10*time.Second)
	return w, a
}

func TestJobScopedLife(t *testing.T) {
	w := worldFor("acme/app")
	live(t, w)
	want := []string{"allow acme/app", "register job:7", "listen", "allow ", "clean", "power off"}
	if diff := cmp.Diff(want, w.effects[max(0, len(w.effects)-len(want)):]); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// The end of the one job is reported in the step that sees it: the next job
// waits for this host.
func TestEndOfTheOneJobIsToldAtOnce(t *testing.T) {
	w, a := jobHost(t)
	w.runsItsJob()
	passes(t, w, a, time.Minute)
	if !w.report.Busy || w.report.Jobs != 1 {
		t.Fatalf("report %+v", w.report)
	}
	w.jobEnds()
	at := w.now()
	a.Step(t.Context(), at)
	p := w.report
	if p.Busy || p.Jobs != 1 || p.Signal != lifecycle.SignalRegOK || p.Assignment != w.record.Assignment || !p.HeartbeatAt.Equal(at) {
		t.Errorf("report %+v, want one of %s that says not busy and 1 job", p, at)
	}
}

// While no job runs a host reads its record as often as an idle one: its release may come at any time.
func TestReadsWhileAReleaseIsExpected(t *testing.T) {
	tests := map[string]struct {
		jobsOf      string
		ends        bool
		least, most int // reads in 10 s
	}{
		"its job runs":              {"acme", false, 1, 4},
		"its job is over":           {"acme", true, 18, 23},
		"a job of its run is over":  {"", true, 18, 23},
		"a job of its run is going": {"", false, 1, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, a := jobHost(t)
			if test.jobsOf == "" {
				w = newWorld()
				serving(w)
				a = newAgent(t, w)
				passes(t, w, a, 10*time.Second)
			}
			w.runsItsJob()
			passes(t, w, a, 10*time.Second)
			if w.observed.Busy = !test.ends; test.ends && test.jobsOf != "" {
				w.jobEnds()
			}
			before := w.reads
			passes(t, w, a, 10*time.Second)
			if n := w.reads - before; n < test.least || n > test.most {
				t.Errorf("%d reads in 10 s, want %d to %d", n, test.least, test.most)
			}
		})
	}
}

// The first read comes within the idle interval, whenever the last one was.
func TestReleaseIsSeenSoonAfterTheOneJob(t *testing.T) {
	w, a := jobHost(t)
	w.runsItsJob()
	passes(t, w, a, 7*time.Second)
	w.jobEnds()
	a.Step(t.Context(), w.now())
	at := w.now()
	w.release("")
	steps(t, w, a, func() bool { return w.report.Assignment == w.record.Assignment })
	if took := w.now().Sub(at); took > 600*time.Millisecond {
		t.Errorf("the release was seen after %s", took)
	}
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
}

// While the store is away its backoff counts, also for a host that expects its
// release.
func TestExpectedReleaseDoesNotHurryABrokenStore(t *testing.T) {
	w, a := jobHost(t)
	w.runsItsJob()
	passes(t, w, a, 10*time.Second)
	w.observed.Busy = false // its listener lives on and is looked at every second
	w.away = true
	passes(t, w, a, time.Minute)
	before := w.reads
	passes(t, w, a, time.Minute)
	if n := w.reads - before; n > 30 {
		t.Errorf("%d reads in a minute of a store that is away", n)
	}
}

// A registration that is gone before a job came is reported, so that the host goes
// back. Neither its release nor a restarted agent waits for a remove token,
// whatever the runner left on disk.
func TestRegistrationGoneWithoutAJob(t *testing.T) {
	w, a := jobHost(t)
	w.jobEnds()
	w.observed.Registration = true // it keeps its files
	settle(t, w, a, lifecycle.SignalRegFailed)
	if p := w.report; p.Cause != lifecycle.CauseGitHub || !strings.Contains(p.Detail, "its registration is gone from GitHub") || p.Jobs != 0 {
		t.Errorf("report %+v", p)
	}
	w.release("")
	w.effects = nil
	settle(t, w, newAgent(t, w), lifecycle.SignalRemoveRegOK)
	if diff := cmp.Diff([]string{"allow ", "clean"}, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// A job-scoped host that is released before its job came stops its listener
// and has nothing to deregister.
func TestJobScopedHostReleasedWithoutAJob(t *testing.T) {
	w, a := jobHost(t)
	w.release("")
	w.effects = nil
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	if diff := cmp.Diff([]string{"allow ", "stop", "clean"}, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// The labels of a JIT configuration are its own; the turn's run id is none.
func TestLabelsOfAssignments(t *testing.T) {
	w, _ := jobHost(t)
	if got := w.registered; len(got.Labels) != 0 || got.Registration.Kind != lifecycle.RegistrationJIT {
		t.Errorf("registered as %+v", got)
	}
	w = newWorld()
	w.record.Labels = []string{"gpu"}
	settle(t, w, newAgent(t, w), lifecycle.SignalRegOK)
	if got := w.registered.Labels; !slices.Equal(got, []string{"run-1", "gpu"}) {
		t.Errorf("labels %v", got)
	}
}

// TestTokenOfAMirrorIsASecret: the clean-up gets it, and neither the report nor the agent's memory on disk has it.
func TestTokenOfAMirrorIsASecret(t *testing.T) {
	const token = "token-of-a-mirror"
	w, a := jobHost(t)
	w.release("")
	w.record.Mirror = &lifecycle.Mirror{URL: "https://github.com/acme/app.git", Branch: "main", Token: token}
	w.fail["clean"] = agent.Progress{Cause: lifecycle.CauseHost, Detail: "cannot use " + token}
	settle(t, w, a, lifecycle.SignalRemoveRegFailed)
	if d := w.report.Detail; !strings.Contains(d, "cannot use") || strings.Contains(d, token) {
		t.Errorf("detail %q", d)
	}
	saved, err := json.Marshal(w.disk.memory)
	if err != nil || strings.Contains(string(saved), token) {
		t.Errorf("the memory on disk, %v: %s", err, saved)
	}
	if w.record.Mirror == nil || w.record.Mirror.Token != token {
		t.Error("the record has lost its token")
	}
}

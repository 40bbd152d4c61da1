package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestReport(t *testing.T) {
	w := newWorld()
	w.offset = 90 * time.Second
	busy(w)
	w.observed.InterruptionAt, w.observed.RunnerVersion = start.Add(2*time.Minute), "2.330.0"
	a := newAgent(t, w)
	passes(t, w, a, time.Second)
	want := lifecycle.Report{
		HostKey: "i-1", HeartbeatAt: w.report.HeartbeatAt, BootID: "boot-1", AgentVersion: "test", RunnerVersion: "2.330.0", Assignment: 1,
		RunID: "run-1", Signal: lifecycle.SignalRegOK, Busy: true, RegisteredAt: start.Add(90 * time.Second), Jobs: 1,
		InterruptionAt: start.Add(2*time.Minute + 90*time.Second),
	}
	if diff := cmp.Diff(want, w.report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if late := w.report.HeartbeatAt.Sub(w.storeNow()).Abs(); late > 2*time.Second {
		t.Errorf("heartbeat is %s off the store's clock", late)
	}
	if err := w.report.Check(w.storeNow()); err != nil {
		t.Error(err)
	}
}

// No secret and no endless log gets into a report.
func TestDetailIsPresentable(t *testing.T) {
	w := newWorld()
	w.fail["register"] = agent.Progress{
		Cause: lifecycle.CauseHost, Detail: strings.Repeat("é", 5000) + " \xff token reg-token refused",
	}
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegFailed)
	d := w.report.Detail
	if strings.Contains(d, "reg-token") || !strings.HasSuffix(d, "token [secret] refused") {
		t.Errorf("detail ends with %q", d[max(0, len(d)-60):])
	}
	if len(d) > 2048 || !utf8.ValidString(d) {
		t.Errorf("detail of %d bytes, valid: %t", len(d), utf8.ValidString(d))
	}
	if err := w.report.Check(w.storeNow()); err != nil {
		t.Error(err)
	}
}

// The remove token is gone from the record when its failure is still told.
func TestDetailHidesTheLastToken(t *testing.T) {
	w := newWorld()
	serving(w)
	w.fail["deregister"] = agent.Progress{Cause: lifecycle.CauseHost, Detail: "token remove-run-1 refused"}
	w.release("remove-run-1")
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRemoveRegFailed)
	w.change(func(r *lifecycle.Record) { r.Registration = nil })
	passes(t, w, a, 30*time.Second)
	if w.report.Detail != "token [secret] refused" {
		t.Errorf("detail %q", w.report.Detail)
	}
}

// A full disk, or a damaged state, is reported and harms no job.
func TestUnusableState(t *testing.T) {
	tests := map[string]struct {
		disk disk
		want string
	}{
		"read-only": {disk{saveErr: errors.New("save agent state: read-only file system")}, "save agent state: read-only file system"},
		"damaged":   {disk{loadErr: errors.New("load agent state: damaged")}, "load agent state: damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			busy(w)
			w.disk = test.disk
			a := newAgent(t, w)
			passes(t, w, a, time.Hour)
			p := w.report
			if p.Signal != lifecycle.SignalRegOK || !p.Busy || p.Cause != lifecycle.CauseHost || p.Detail != test.want {
				t.Errorf("report %+v", p)
			}
			if len(w.effects) > 0 {
				t.Errorf("the host was touched: %v", w.effects)
			}
		})
	}
}

// What the host cannot even begin becomes a failure, tried at growing pauses.
func TestStuckEffect(t *testing.T) {
	tests := map[string]struct {
		world func(w *world)
		want  lifecycle.Signal
	}{
		"created":   {func(*world) {}, lifecycle.SignalRegFailed},
		"releasing": {func(w *world) { serving(w); w.release("remove-token") }, lifecycle.SignalRemoveRegFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.world(w)
			w.effectErr = errors.New("no space left on device")
			a := newAgent(t, w)
			settle(t, w, a, test.want)
			if p := w.report; p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "no space left on device") {
				t.Errorf("report %+v", p)
			}
			if waited := w.now().Sub(start); waited > 2*time.Second {
				t.Errorf("told after %s", waited)
			}
			before := w.attempts
			passes(t, w, a, 10*time.Minute)
			if n := w.attempts - before; n < 30 || n > 80 {
				t.Errorf("%d attempts in 10 minutes", n)
			}
		})
	}
}

func TestListenerThatKeepsExiting(t *testing.T) {
	w := newWorld()
	w.listenCode = []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegFailed)
	if w.report.Cause != lifecycle.CauseGitHub || !strings.Contains(w.report.Detail, "8 times in a row") {
		t.Errorf("report %+v", w.report)
	}
	if n := len(w.listenCode); n != 2 {
		t.Errorf("the listener was started %d times, want 8", 10-n)
	}
	if waited := w.now().Sub(start); waited < 30*time.Second || waited > 4*time.Minute {
		t.Errorf("given up after %s", waited)
	}
}

// The count of restarts is not lost with the agent.
func TestRestartsAreRemembered(t *testing.T) {
	w := newWorld()
	w.listenCode = []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
	for range 100 {
		a := newAgent(t, w)
		for range 10 {
			next, _ := a.Step(t.Context(), w.now())
			w.sleepUntil(next)
		}
		if w.answered(lifecycle.SignalRegFailed) {
			if n := len(w.listenCode); n != 2 {
				t.Errorf("the listener was started %d times, want 8", 10-n)
			}
			return
		}
	}
	t.Errorf("never given up; report %+v", w.report)
}

func TestRemovalRetriedWithANewToken(t *testing.T) {
	w := newWorld()
	serving(w)
	w.release("first")
	w.fail["deregister"] = agent.Progress{Cause: lifecycle.CauseGitHub, Detail: "HTTP 503"}
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRemoveRegFailed)
	if w.report.Cause != lifecycle.CauseGitHub {
		t.Errorf("report %+v", w.report)
	}
	delete(w.fail, "deregister")
	w.change(func(r *lifecycle.Record) { r.Registration = removeToken("second") })
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	if !w.did("deregister second") {
		t.Errorf("effects %v", w.effects)
	}
}

// A record of an older assignment or version, however it comes, is ignored.
func TestOlderRecordIsIgnored(t *testing.T) {
	w := newWorld()
	resting(w)
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	newest := *w.record
	for _, older := range w.older {
		w.record = &older
		passes(t, w, a, 3*time.Second)
		if w.report.Assignment != newest.Assignment || len(w.effects) > 0 {
			t.Errorf("version %d after %d: report %+v, effects %v", older.Version, newest.Version, w.report, w.effects)
		}
	}
}

// A reboot runs the script again, and the listener, and ends no assignment.
func TestReboot(t *testing.T) {
	w := newWorld()
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	w.running()
	passes(t, w, a, 10*time.Second)
	w.observed.BootID, w.observed.Prepared = "boot-2", agent.Progress{}
	w.observed.Listener.Phase, w.observed.Listener.Code, w.observed.Listener.At = agent.ListenerExited, agent.CodeUnknown, w.now()
	w.effects = nil
	a = newAgent(t, w)
	steps(t, w, a, func() bool { return w.observed.Listener.Phase == agent.ListenerListening })
	if diff := cmp.Diff([]string{"prepare", "listen"}, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// What an agent saw may be lost with its state, so the first read is not an
// old one.
func TestFirstReadIsConsistent(t *testing.T) {
	w := newWorld()
	resting(w)
	w.stale, w.staleAlways, w.older = true, true, w.older[:1]
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	if w.report.Assignment != w.record.Assignment || len(w.effects) > 0 {
		t.Errorf("report %+v, effects %v", w.report, w.effects)
	}
}

// Whether a record is gone is not said by a read that may be old.
func TestRecordHidden(t *testing.T) {
	w := newWorld()
	resting(w)
	w.record.Threshold = w.now().Add(2 * time.Hour)
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	w.hides = true
	if passes(t, w, a, time.Hour) {
		t.Errorf("powered off: %s", w.poweredOff)
	}
}

// That a job was refused is remembered when the hook's word is lost.
func TestRefusalIsRemembered(t *testing.T) {
	w := newWorld()
	serving(w)
	w.observed.Refused = "9"
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	w.observed.Refused = ""
	w.release("remove-token")
	a = newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRemoveRegFailed)
	if w.report.Cause != lifecycle.CauseHost || w.report.Detail != "refused a job of run 9" {
		t.Errorf("report %+v", w.report)
	}
}

// A host that cannot be looked at is reported as busy, and left alone.
func TestBlind(t *testing.T) {
	w := newWorld()
	serving(w)
	a := newAgent(t, w)
	passes(t, w, a, 10*time.Second)
	w.lookErr = errors.New("open /proc: permission denied")
	w.release("remove-token")
	passes(t, w, a, time.Minute)
	p := w.report
	if !p.Busy || p.Signal != lifecycle.SignalNone || p.Assignment != 2 || !strings.Contains(p.Detail, "permission denied") {
		t.Errorf("report %+v", p)
	}
	if len(w.effects) > 0 {
		t.Errorf("the host was touched: %v", w.effects)
	}
	w.lookErr = nil
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
}

// The agent tells its key until the record has it, and the statement until the host is pooled: heartbeats carry neither, and no report is
// written for that alone.
func TestProofInReports(t *testing.T) {
	w := newWorld()
	serving(w)
	w.observed.Key = "key-1"
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	if w.report.AgentKey != "key-1" || w.report.Statement != "" {
		t.Errorf("serving: key %q, statement %q", w.report.AgentKey, w.report.Statement)
	}
	w.change(func(r *lifecycle.Record) { r.AgentKey, r.TrustKey, r.LastRun = "key-1", "acme/app", "run-1" })
	passes(t, w, a, 40*time.Second)
	if w.report.AgentKey != "" {
		t.Errorf("the record has the key, and the report has %q", w.report.AgentKey)
	}
	w.release("remove-run-1")
	settle(t, w, a, lifecycle.SignalRemoveRegOK)
	if want := "signed: clean after acme/app/run-1"; w.report.Statement != want {
		t.Errorf("statement %q, want %q", w.report.Statement, want)
	}
	w.pool()
	writes := w.writes
	passes(t, w, a, 5*time.Second)
	if w.writes > writes+1 { // a heartbeat may be due
		t.Errorf("%d reports within 5 s after the host was pooled", w.writes-writes)
	}
	passes(t, w, a, 40*time.Second)
	if w.report.Statement != "" {
		t.Errorf("a heartbeat of a pooled host has statement %q", w.report.Statement)
	}
	w.change(func(r *lifecycle.Record) { r.AgentKey = "key-0" })
	passes(t, w, a, 40*time.Second)
	if w.report.AgentKey != "key-1" {
		t.Errorf("the record has another key, and the report has %q", w.report.AgentKey)
	}
}

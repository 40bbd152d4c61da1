package agent_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// scriptFails is a new host whose pre-runner script fails at once.
func scriptFails(w *world) {
	w.fail["prepare"] = agent.Progress{Cause: lifecycle.CauseHost, Detail: "apt-get: 404"}
}

// A host whose pre-runner script failed ends itself a minute after it first
// told so, or tried to.
func TestFailedScriptEndsTheHost(t *testing.T) {
	tests := map[string]struct {
		world   func(w *world)
		on, off time.Duration // as in TestEndsAfterItsThreshold
	}{
		"told":                {scriptFails, 59 * time.Second, 62 * time.Second},
		"clock 90 s ahead":    {func(w *world) { scriptFails(w); w.offset = -90 * time.Second }, 59 * time.Second, 62 * time.Second},
		"held by an operator": {func(w *world) { scriptFails(w); w.record.Hold = w.now().Add(time.Hour) }, time.Hour - time.Second, time.Hour + time.Second},
		"a job runs": {func(w *world) { busy(w); w.observed.Prepared.Phase = agent.PhaseFailed },
			6*time.Hour + 59*time.Second, 6*time.Hour + 62*time.Second},
		"a listener lives on": {func(w *world) { serving(w); w.observed.Prepared.Phase = agent.PhaseFailed }, 10 * time.Minute, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, tt.world, func(b *bubble) {
				b.after(tt.on)
				b.wantOn(tt.on.String())
				if tt.off == 0 {
					return
				}
				b.after(tt.off - tt.on)
				b.wantOff(tt.off.String())
			})
		})
	}
}

// The store may be away: then controld gets no report, and only the agent ends the host.
func TestFailedScriptEndsTheHostWithoutTheStore(t *testing.T) {
	inBubble(t, func(w *world) { scriptFails(w); w.hold = true }, func(b *bubble) {
		b.after(time.Second)
		b.away, b.hold = true, false
		b.after(59 * time.Second)
		b.wantOn("it may still be told")
		b.after(15 * time.Second)
		b.wantOff("controld has not ended it")
	})
}

// An agent that was away reports the failure before it acts on it, and one
// that restarts repeatedly does not begin the wait again each time.
func TestFailedScriptAndRestarts(t *testing.T) {
	inBubble(t, scriptFails, func(b *bubble) {
		b.observed.Prepared = agent.Progress{Phase: agent.PhaseFailed, At: b.now().Add(-time.Hour), Cause: lifecycle.CauseHost}
		for range 5 {
			b.after(11 * time.Second)
			b.wantOn("it was told a moment ago")
			if b.report.Signal != lifecycle.SignalFailed {
				b.Errorf("report %+v", b.report)
			}
			b.stop()
			b.start()
		}
		b.after(8 * time.Second)
		b.wantOff("it was told a minute ago")
	})
}

func TestRebootTriesTheScriptAnew(t *testing.T) {
	w := newWorld()
	scriptFails(w)
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalFailed)
	passes(t, w, a, 50*time.Second)
	w.observed.BootID, w.observed.Prepared = "boot-2", agent.Progress{}
	delete(w.fail, "prepare")
	a = newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	if passes(t, w, a, 2*time.Minute) {
		t.Errorf("powered off: %s", w.poweredOff)
	}
}

// An end that cannot be begun is tried again, at growing pauses.
func TestPowerOffIsTriedAgain(t *testing.T) {
	inBubble(t, func(w *world) { resting(w); w.terminate(); w.effectErr = errors.New("power off: no answer") }, func(b *bubble) {
		b.after(time.Minute)
		if b.attempts < 8 || b.attempts > 20 {
			b.Errorf("%d attempts in a minute", b.attempts)
		}
		b.effectErr = nil
		b.after(11 * time.Second)
		b.wantOff("it can be")
	})
}

// An interruption is reported in the step that sees it, and the listener is stopped
// in that step or the next.
func TestInterruptionOfAnIdleRunner(t *testing.T) {
	inBubble(t, serving, func(b *bubble) {
		b.after(7300 * time.Millisecond)
		at := b.now().Add(2 * time.Minute)
		b.observed.InterruptionAt = at
		b.changed <- struct{}{}
		synctest.Wait()
		if !b.report.InterruptionAt.Equal(at) || !b.did("stop") {
			b.Errorf("report %+v, effects %v", b.report, b.effects)
		}
		b.after(90 * time.Second)
		if diff := cmp.Diff([]string{"stop"}, b.effects); diff != "" {
			b.Errorf("effects (-want +got):\n%s", diff)
		}
		b.wantOn("EC2 ends it")
		b.release("remove-token")
		b.after(6 * time.Second)
		if !b.did("deregister remove-token") || b.did("listen") {
			b.Errorf("effects %v", b.effects)
		}
	})
}

// A job is left alone, and then no other is taken.
func TestInterruptionOfABusyRunner(t *testing.T) {
	inBubble(t, busy, func(b *bubble) {
		b.after(10 * time.Second)
		at := b.now().Add(2 * time.Minute)
		b.observed.InterruptionAt = at
		b.changed <- struct{}{}
		synctest.Wait()
		if !b.report.InterruptionAt.Equal(at) || !b.report.Busy || b.report.Signal != lifecycle.SignalRegOK || len(b.effects) > 0 {
			b.Errorf("report %+v, effects %v", b.report, b.effects)
		}
		b.after(30 * time.Second)
		if len(b.effects) > 0 {
			b.Errorf("touched while a job runs: %v", b.effects)
		}
		b.observed.Busy = false
		b.changed <- struct{}{}
		synctest.Wait()
		if !b.did("stop") || b.report.Busy || b.report.Signal != lifecycle.SignalRegFailed || b.report.Cause != lifecycle.CauseAWS {
			b.Errorf("report %+v, effects %v", b.report, b.effects)
		}
	})
}

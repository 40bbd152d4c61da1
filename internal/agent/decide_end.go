package agent

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// end powers the host off, after one more consistent read: the last read may have been stale.
func (v decider) end(reason string) Decision {
	if !v.Confirmed {
		return do(EffectConfirm, "reading consistently before the end: "+reason)
	}
	return do(EffectPowerOff, reason)
}

// mustEnd returns why the host must end now, or "".
func (v decider) mustEnd() string {
	switch {
	case v.held():
		return ""
	case v.Record != nil && v.Record.State == lifecycle.StateTerminated:
		return "its record is terminated: " + v.Record.Reason
	case !reached(v.endsAt(), v.now):
		return ""
	case reached(v.scriptEnd(), v.now):
		return fmt.Sprintf("its pre-runner script failed %s ago and controld has not ended it",
			v.now.Sub(v.Memory.ScriptFailedAt).Round(time.Second))
	case v.Record == nil:
		return fmt.Sprintf("no record of this host for %s", v.now.Sub(v.Memory.StartedAt).Round(time.Second))
	case v.recordGone():
		return fmt.Sprintf("its record is gone since %s", v.MissingSince.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("its threshold of %s has passed by %s and controld has not ended it",
		v.Record.Threshold.UTC().Format(time.RFC3339), v.now.Sub(v.Record.Threshold).Round(time.Second))
}

// endsAt returns when the host ends itself if its record does not change; zero for
// never. It does not depend on whether the store answers (docs/design.md#the-lifecycle).
func (v decider) endsAt() time.Time {
	if v.held() {
		return v.Record.Hold
	}
	at, margin := v.deadline()
	if !at.IsZero() {
		at = at.Add(margin)
	}
	return earliest(at, v.scriptEnd())
}

// deadline returns until when the host may exist (zero for no limit), and for how
// long after that it waits for the control plane to end it.
func (v decider) deadline() (at time.Time, margin time.Duration) {
	switch {
	case v.Record == nil && v.busy():
		return v.runtimeEnd(), endMargin
	case v.Record == nil:
		return v.Memory.StartedAt.Add(v.BootTimeout), 0
	case v.recordGone():
		return v.MissingSince, goneMargin
	case v.Record.Threshold.IsZero():
		return time.Time{}, 0
	case v.busy():
		return latest(v.Record.Threshold, v.runtimeEnd()), endMargin
	}
	return v.Record.Threshold, endMargin
}

// scriptEnd returns when a host whose pre-runner script failed ends itself: it can serve no run in this boot.
// It is zero if the script did not fail, or while an earlier runner lives.
func (v decider) scriptEnd() time.Time {
	failedAt := v.Memory.ScriptFailedAt
	if failedAt.IsZero() || v.Observed.Prepared.Phase != PhaseFailed || v.busy() || v.Observed.Listener.alive() {
		return time.Time{}
	}
	return failedAt.Add(scriptMargin)
}

// recordGone reports whether an existing record was deleted. Its threshold is gone
// with it, but a running job may continue to the end of its runtime.
func (v decider) recordGone() bool { return !v.MissingSince.IsZero() && !v.busy() }

func (v decider) held() bool { return v.Record != nil && v.Record.Held(v.now) }

// runtimeEnd returns when the running job has used up its maximum runtime. Unknown
// times are assumed as late as possible.
func (v decider) runtimeEnd() time.Time {
	registered, most := v.Observed.Registered.At, lifecycle.DefaultPolicy().MaxRuntime
	if registered.IsZero() || v.Observed.Registered.Phase != PhaseOK {
		registered = v.Memory.StartedAt
	}
	if v.Record != nil && v.Record.MaxRuntime > 0 {
		most = v.Record.MaxRuntime
	}
	return registered.Add(most)
}

package agent

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// end powers the host off, after the store was asked once more: the last read
// may have been an old one.
func (v view) end(why string) Decision {
	if !v.Confirmed {
		return do(EffectConfirm, "reading consistently before the end: "+why)
	}
	return do(EffectPowerOff, why)
}

// mustEnd says why the host must end now, or "".
func (v view) mustEnd() string {
	switch {
	case v.held():
		return ""
	case v.Record != nil && v.Record.State == lifecycle.StateTerminated:
		return "its record is terminated: " + v.Record.Reason
	case !reached(v.endsAt(), v.now):
		return ""
	case reached(v.scriptEnd(), v.now):
		return fmt.Sprintf("its pre-runner script failed %s ago and nobody ended it",
			v.now.Sub(v.Memory.ScriptFailedAt).Round(time.Second))
	case v.Record == nil:
		return fmt.Sprintf("no record of this host for %s", v.now.Sub(v.Memory.StartedAt).Round(time.Second))
	case v.forgotten():
		return fmt.Sprintf("its record is gone since %s", v.MissingSince.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("its threshold of %s has passed by %s and nobody ended it",
		v.Record.Threshold.UTC().Format(time.RFC3339), v.now.Sub(v.Record.Threshold).Round(time.Second))
}

// endsAt is when the host ends itself if nothing new is heard; zero for never.
// It does not depend on whether the store answers (docs/design.md#the-lifecycle).
func (v view) endsAt() time.Time {
	if v.held() {
		return v.Record.Hold
	}
	at, margin := v.deadline()
	if !at.IsZero() {
		at = at.Add(margin)
	}
	return earliest(at, v.scriptEnd())
}

// deadline is until when the host may be there, zero for ever, and for how long
// after that it leaves its end to others.
func (v view) deadline() (at time.Time, margin time.Duration) {
	switch {
	case v.Record == nil && v.busy():
		return v.runtimeEnd(), endMargin
	case v.Record == nil:
		return v.Memory.StartedAt.Add(v.BootTimeout), 0
	case v.forgotten():
		return v.MissingSince, goneMargin
	case v.Record.Threshold.IsZero():
		return time.Time{}, 0
	case v.busy():
		return latest(v.Record.Threshold, v.runtimeEnd()), endMargin
	}
	return v.Record.Threshold, endMargin
}

// scriptEnd is when a host ends itself whose pre-runner script failed: it can
// serve no run in this boot. Zero when it did not fail, or when a runner lives
// that was there before.
func (v view) scriptEnd() time.Time {
	failedAt := v.Memory.ScriptFailedAt
	if failedAt.IsZero() || v.Scene.Prepared.Phase != PhaseFailed || v.busy() || v.Scene.Listener.alive() {
		return time.Time{}
	}
	return failedAt.Add(scriptMargin)
}

// forgotten: a record that was there is there no more. Whoever took it away
// also forgot its threshold, but a job goes on to the end of its runtime.
func (v view) forgotten() bool { return !v.MissingSince.IsZero() && !v.busy() }

func (v view) held() bool { return v.Record != nil && v.Record.Held(v.now) }

// runtimeEnd is when the job that runs has had all its time. What is not known
// is taken as late as it can be.
func (v view) runtimeEnd() time.Time {
	registered, most := v.Scene.Registered.At, lifecycle.DefaultPolicy().MaxRuntime
	if registered.IsZero() || v.Scene.Registered.Phase != PhaseOK {
		registered = v.Memory.StartedAt
	}
	if v.Record != nil && v.Record.MaxRuntime > 0 {
		most = v.Record.MaxRuntime
	}
	return registered.Add(most)
}

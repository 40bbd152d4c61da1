package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Facts are the complete input of a decision. Times are on the store's clock.
type Facts struct {
	// Record is the newest record seen, nil when there never was one.
	Record *lifecycle.Record
	// MissingSince is when a consistent read first found the record gone; zero
	// while it exists or the store does not answer.
	MissingSince time.Time
	// Observed is the state of the host. Blind says that it could not be observed:
	// then Observed is the last known state.
	Observed Observed
	Blind    bool
	Memory   Memory
	// RefusedSince is when the agent first saw the refused worker that lives; zero if there is none.
	RefusedSince time.Time
	// Tried says that a removal was already tried with the record's registration.
	Tried bool
	// Confirmed says that a consistent read was made since there was a reason to end the host.
	Confirmed bool
	// BootTimeout is how long the host waits for its first record.
	BootTimeout time.Duration
}

// Decision is the one effect to begin now, its reason, and what to report.
type Decision struct {
	Effect Effect
	// Reason is a sentence for the log and the status line.
	Reason string
	Answer Answer
	// RecheckAt is when to decide again if nothing changes; zero for never.
	RecheckAt time.Time
}

// Effect is something that the agent does to its host.
type Effect string

// The effects.
const (
	EffectNone       Effect = ""
	EffectPrepare    Effect = "prepare"
	EffectAllow      Effect = "allow"
	EffectRegister   Effect = "register"
	EffectListen     Effect = "listen"
	EffectStop       Effect = "stop"
	EffectEndRefused Effect = "end_refused"
	EffectDeregister Effect = "deregister"
	EffectClean      Effect = "clean"
	EffectConfirm    Effect = "confirm" // read the record consistently
	EffectPowerOff   Effect = "power_off"
)

// Answer is what the report says about the record's assignment.
type Answer struct {
	Signal lifecycle.Signal
	Cause  lifecycle.Cause
	Detail string
}

// Decide is the agent's only decision function. It is pure and total.
func Decide(f Facts, now time.Time) Decision {
	v := decider{Facts: f, now: now}
	if reason := v.mustEnd(); reason != "" {
		return v.end(reason)
	}
	d := v.endRefused(v.keepInStep())
	d.RecheckAt = earliest(d.RecheckAt, v.endsAt())
	return d
}

// decider is the facts and the time, with the predicates that decisions use.
type decider struct {
	Facts
	now time.Time
}

func (v decider) keepInStep() Decision {
	switch {
	case v.Record == nil:
		return wait("there is no record of this host yet")
	case v.Blind:
		return wait("the host cannot be looked at; whatever runs is left alone")
	}
	switch v.Record.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
		return v.serve()
	case lifecycle.StateIdle:
		if standsBy(*v.Record) {
			return v.standBy()
		}
		return v.release()
	}
	return wait(fmt.Sprintf("state %q is not one of ours", v.Record.State))
}

// endRefused ends the worker of a job that the hook refused and did not end, whatever the record says: the job's steps would run
// here. Everything else waits for that. A worker whose job was let in is never one of these.
func (v decider) endRefused(d Decision) Decision {
	if v.Blind || v.Observed.RefusedWorker == 0 || v.RefusedSince.IsZero() {
		return d
	}
	at := v.RefusedSince.Add(refusalGrace)
	if !reached(at, v.now) {
		return d.recheckAt(earliest(d.RecheckAt, at))
	}
	return do(EffectEndRefused, "a job was refused and its worker lives on").answering(d.Answer)
}

// busy reports whether a job may be running. A host that cannot be observed is busy.
func (v decider) busy() bool { return v.Blind || v.Observed.Busy }

func do(e Effect, reason string) Decision { return Decision{Effect: e, Reason: reason} }

func wait(reason string) Decision { return Decision{Reason: reason} }

func (d Decision) answering(a Answer) Decision {
	d.Answer = a
	return d
}

func (d Decision) recheckAt(t time.Time) Decision {
	d.RecheckAt = t
	return d
}

// usable reports whether the record has an unexpired registration of this kind.
func (v decider) usable(kind lifecycle.RegistrationKind) bool {
	reg := v.Record.Registration
	return reg != nil && reg.Kind == kind && !reached(reg.ExpiresAt, v.now)
}

// refused returns the run whose job was refused on this host, or "".
func (v decider) refused() string {
	if v.Observed.Refused != "" {
		return v.Observed.Refused
	}
	return v.Memory.Refused
}

// retryAt returns when a task that failed because of GitHub is tried again. After a rate limit that is a
// minute, the least that GitHub asks for.
func retryAt(p Progress) time.Time {
	if p.Cause == lifecycle.CauseRateLimit {
		return p.At.Add(retryCap)
	}
	return p.At.Add(doubled(p.Attempt, retryBase, retryCap))
}

// reached reports whether the time t has come. The zero time never comes.
func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earliest returns the earliest of some times, ignoring zero ones.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || (!t.IsZero() && t.Before(first)) {
			first = t
		}
	}
	return first
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// release releases the host from its run. Deleting the registration is the point after which GitHub assigns no further job,
// so that comes first, while the listener still listens: a job that GitHub assigned before may start and finish. Then the
// hook refuses all jobs, the listener ends, and everything of the run is deleted. A pooled host has done all of that. A
// fresh host, which had no run, is prepared first, so that it is pooled ready to serve.
func (v decider) release() Decision {
	s := v.Observed
	switch {
	case s.Prepared.Phase == PhaseRunning || s.Registered.Phase == PhaseRunning:
		return wait("released: what was begun comes to its end first")
	case v.leavesGitHub() && s.Busy:
		return wait("released: the job may finish")
	case v.leavesGitHub():
		return v.deregister()
	case s.Taken && s.Allowed != Allowed{}: // the hook knows a job that was taken before the release by its worker
		return wait("released: a job that was taken before is about to start")
	case s.Allowed != Allowed{}:
		return do(EffectAllow, "released: no further job may start")
	case s.Busy:
		return wait("released: the job may finish")
	case s.Listener.alive():
		return v.stop("released, and no job runs")
	case s.Registration && !v.jit():
		return v.deregister()
	case v.Record.Releasing() && v.Record.Fresh() && s.Prepared.Phase == PhaseNone && !v.interrupted():
		return do(EffectPrepare, "the host is new, and the first run that claims it must not wait for this")
	case v.refused() != "":
		return v.notClean(lifecycle.CauseHost, fmt.Sprintf("refused a job of run %s", v.refused()))
	}
	return v.clean()
}

// leavesGitHub reports whether the registration is deleted before the listener ends. After a removal that failed the
// listener ends first: the host may not become free soon, and must not take jobs until then.
func (v decider) leavesGitHub() bool {
	p := v.Observed.Removed.of(v.Record.Assignment)
	failed := p.Phase == PhaseOK || (p.Phase == PhaseFailed && !p.Assigned)
	l := v.Observed.Listener
	return v.Observed.Registration && !v.jit() && l.alive() && l.Phase != ListenerStopping && !failed
}

// jit reports whether the runner has a JIT registration. The agent does not remove it and gets no token for
// that: it ends with its job, or is deleted on GitHub by its name. The clean-up deletes its files.
func (v decider) jit() bool {
	return v.Observed.RegisteredAs == lifecycle.RegistrationJIT || v.Record.JobsOf != ""
}

// stop asks the listener to end, and kills it if it has not ended after stopLimit.
func (v decider) stop(reason string) Decision {
	l := v.Observed.Listener
	if l.Phase != ListenerStopping {
		return do(EffectStop, reason)
	}
	if limit := l.At.Add(stopLimit); !reached(limit, v.now) {
		return wait("the listener was asked to end").recheckAt(limit)
	}
	return do(EffectStop, fmt.Sprintf("the listener did not end within %s", stopLimit))
}

// deregister needs the record's remove token. A token with which a removal failed
// is used again only if the failure was GitHub's; a new token always is.
func (v decider) deregister() Decision {
	p := v.Observed.Removed.of(v.Record.Assignment)
	usable, detail := v.usable(lifecycle.RegistrationRemove), cmp.Or(p.Detail, "the registration could not be removed")
	switch {
	case p.Phase == PhaseRunning:
		return wait("the registration is being removed")
	case p.Phase == PhaseNone && !usable:
		return wait("waiting for a remove token")
	case p.Phase == PhaseNone:
		return do(EffectDeregister, "released, and no job runs")
	case p.Phase == PhaseOK:
		return v.notClean(lifecycle.CauseHost, "the registration is still on disk after its removal")
	case usable && p.Assigned && !reached(p.At.Add(assignedPause), v.now):
		return wait("released: GitHub has assigned a job to the runner, and it may finish").recheckAt(p.At.Add(assignedPause))
	case usable && p.Assigned:
		return do(EffectDeregister, "released, and the assigned job has had its time to begin")
	case usable && (!v.Tried || (p.Cause.Passes() && reached(retryAt(p), v.now))):
		return do(EffectDeregister, fmt.Sprintf("removal, attempt %d", p.Attempt+1)).
			answering(Answer{Signal: lifecycle.SignalRemoveRegFailed, Cause: p.Cause, Detail: detail})
	}
	d := v.notClean(p.Cause, detail)
	if usable && p.Cause.Passes() {
		d = d.recheckAt(retryAt(p))
	}
	return d
}

func (v decider) clean() Decision {
	switch p := v.Observed.Cleaned.of(v.Record.Assignment); {
	case p.Phase == PhaseNone:
		return do(EffectClean, "nothing is registered and nothing runs")
	case p.Phase == PhaseOK && v.Observed.Removed.of(v.Record.Assignment).At.After(p.At):
		return do(EffectClean, "a registration was removed after the last clean-up")
	case p.Phase == PhaseRunning:
		return wait("the host is being cleaned")
	case p.Phase == PhaseFailed:
		return v.notClean(p.Cause, cmp.Or(p.Detail, "the host could not be cleaned"))
	}
	if v.Observed.Registration {
		return v.notClean(lifecycle.CauseHost, "a registration is on disk after the clean-up")
	}
	if p := v.Observed.Prepared; p.Phase == PhaseFailed {
		return v.notClean(lifecycle.CauseHost, scriptFailure(p))
	}
	if v.Record.Pooled() && v.Observed.Prepared.Phase == PhaseNone && !v.interrupted() {
		return do(EffectPrepare, "the pre-runner script has not run in this boot").
			answering(Answer{Signal: lifecycle.SignalRemoveRegOK})
	}
	return wait("deregistered and clean").answering(Answer{Signal: lifecycle.SignalRemoveRegOK})
}

func (v decider) notClean(c lifecycle.Cause, detail string) Decision {
	return wait("deregistration or clean-up failed").answering(
		Answer{Signal: lifecycle.SignalRemoveRegFailed, Cause: c, Detail: detail})
}

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

// unknownRuntime is the maximum runtime of a host whose record does not say: GitHub's
// default limit of a job, which is longer than most maximum runtimes.
const unknownRuntime = 6 * time.Hour

// runtimeEnd returns when the running job has used up its maximum runtime. Unknown
// times are assumed as late as possible.
func (v decider) runtimeEnd() time.Time {
	registered, most := v.Observed.Registered.At, unknownRuntime
	if registered.IsZero() || v.Observed.Registered.Phase != PhaseOK {
		registered = v.Memory.StartedAt
	}
	if v.Record != nil && v.Record.MaxRuntime > 0 {
		most = v.Record.MaxRuntime
	}
	return registered.Add(most)
}

package agent

import (
	"cmp"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// release releases the host from its run: no new job may start, the running one may finish, then the
// registration is removed and everything of the run deleted. A pooled host has done all of that. A fresh
// host, which had no run, is prepared first, so that it is pooled ready to serve.
func (v decider) release() Decision {
	s := v.Observed
	switch {
	case s.Allowed != Allowed{}:
		return do(EffectAllow, "released: no further job may start")
	case s.Busy:
		return wait("released: the job may finish")
	case s.Prepared.Phase == PhaseRunning || s.Registered.Phase == PhaseRunning:
		return wait("released: what was begun comes to its end first")
	case s.Listener.alive():
		return v.stop("released, and no job runs")
	case s.Registration && !v.jit():
		return v.deregister()
	case v.Record.Releasing() && v.Record.Unused() && s.Prepared.Phase == PhaseNone && !v.interrupted():
		return do(EffectPrepare, "the host is new, and the first run that claims it must not wait for this")
	case v.refused() != "":
		return v.notClean(lifecycle.CauseHost, fmt.Sprintf("refused a job of run %s", v.refused()))
	}
	return v.clean()
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
	case usable && (!v.Tried || (p.Cause == lifecycle.CauseGitHub && reached(retryAt(p), v.now))):
		return do(EffectDeregister, fmt.Sprintf("removal, attempt %d", p.Attempt+1)).
			answering(Answer{Signal: lifecycle.SignalRemoveRegFailed, Cause: p.Cause, Detail: detail})
	}
	d := v.notClean(p.Cause, detail)
	if usable && p.Cause == lifecycle.CauseGitHub {
		d = d.recheckAt(retryAt(p))
	}
	return d
}

func (v decider) clean() Decision {
	switch p := v.Observed.Cleaned.of(v.Record.Assignment); p.Phase {
	case PhaseNone:
		return do(EffectClean, "nothing is registered and nothing runs")
	case PhaseRunning:
		return wait("the host is being cleaned")
	case PhaseFailed:
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

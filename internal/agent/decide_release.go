package agent

import (
	"cmp"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// release frees the host of its run: no new job, the running one to its end,
// the registration removed, then everything of the run deleted. A pooled host
// is one for which all that is done. A fresh host, which had no run, is prepared
// first: it is pooled ready to serve.
func (v view) release() Decision {
	s := v.Scene
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

// jit: the registration is not the agent's to remove, and nobody gives it a
// token for that. It ends with its job, or is deleted on GitHub by its name;
// what is left of it on disk goes with the clean-up.
func (v view) jit() bool {
	return v.Scene.RegisteredAs == lifecycle.RegistrationJIT || v.Record.JobsOf != ""
}

// stop ends the listener, at once when it does not end when asked.
func (v view) stop(why string) Decision {
	l := v.Scene.Listener
	if l.Phase != ListenerStopping {
		return do(EffectStop, why)
	}
	if limit := l.At.Add(stopLimit); !reached(limit, v.now) {
		return wait("the listener was asked to end").lookAt(limit)
	}
	return do(EffectStop, fmt.Sprintf("the listener did not end within %s", stopLimit))
}

// deregister needs the record's remove token. One that failed is good for
// another attempt only when the fault was GitHub's; a new one always is.
func (v view) deregister() Decision {
	p := v.Scene.Removed.of(v.Record.Assignment)
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
		d = d.lookAt(retryAt(p))
	}
	return d
}

func (v view) clean() Decision {
	switch p := v.Scene.Cleaned.of(v.Record.Assignment); p.Phase {
	case PhaseNone:
		return do(EffectClean, "nothing is registered and nothing runs")
	case PhaseRunning:
		return wait("the host is being cleaned")
	case PhaseFailed:
		return v.notClean(p.Cause, cmp.Or(p.Detail, "the host could not be cleaned"))
	}
	if v.Scene.Registration {
		return v.notClean(lifecycle.CauseHost, "a registration is on disk after the clean-up")
	}
	if p := v.Scene.Prepared; p.Phase == PhaseFailed {
		return v.notClean(lifecycle.CauseHost, scriptFailure(p))
	}
	if v.Record.Pooled() && v.Scene.Prepared.Phase == PhaseNone && !v.interrupted() {
		return do(EffectPrepare, "the pre-runner script has not run in this boot").
			answering(Answer{Signal: lifecycle.SignalRemoveRegOK})
	}
	return wait("deregistered and clean").answering(Answer{Signal: lifecycle.SignalRemoveRegOK})
}

func (v view) notClean(c lifecycle.Cause, detail string) Decision {
	return wait("deregistration or clean-up failed").answering(
		Answer{Signal: lifecycle.SignalRemoveRegFailed, Cause: c, Detail: detail})
}

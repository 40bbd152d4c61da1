package agent

import (
	"cmp"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host in standby is pooled and has registered ahead of need: its runner listens, under a label that no job names. A
// claim gives that runner the labels of its run over GitHub's REST API, so nothing has to happen on the host except that
// the hook learns of the run.

// standsBy reports whether a pooled host is to register and listen ahead of need.
func standsBy(r lifecycle.Record) bool { return r.Pooled() && r.Standby != nil }

// registeredAhead reports whether the runner that registered ahead of need is known on GitHub: the host is
// hot, or serves its run by the runner that it waited with.
func (v decider) registeredAhead() bool {
	s := v.Record.Standby
	return s != nil && s.RunnerID != 0
}

// runnerAssignment is the assignment under which the runner of this record registers.
func runnerAssignment(r lifecycle.Record) int64 {
	if s := r.Standby; s != nil && !s.Discarded {
		return s.Assignment
	}
	return r.Assignment
}

func (v decider) runnerAssignment() int64 { return runnerAssignment(*v.Record) }

// standBy makes a pooled host register and listen, and keeps it listening. The hook is first: from then on a job waits
// there until the agent has read the claim of its run.
func (v decider) standBy() Decision {
	s := v.Observed
	hook := s.Allowed == allowedBy(*v.Record)
	switch {
	case s.Cleaned.Phase == PhaseRunning || s.Removed.Phase == PhaseRunning:
		return wait("the clean-up of the last run is not over")
	case v.interrupted() && !s.Busy:
		return v.leaveMachine()
	case v.refused() != "":
		return v.lost(lifecycle.CauseHost, fmt.Sprintf("refused a job of run %s", v.refused()))
	case v.hasOldRunner():
		return v.otherRunner()
	case s.Busy && hook:
		return wait("a job has come and waits for the claim of its run").answering(v.working())
	case s.Busy:
		return do(EffectAllow, "a job has come and has to wait for the claim of its run").answering(v.working())
	case !v.hasRunner() && s.Cleaned.of(v.Record.Assignment).Phase != PhaseOK:
		return v.release() // its clean-up has no result
	}
	if !s.Listener.alive() && s.Prepared.Phase != PhaseOK {
		return v.prepare()
	}
	if !hook {
		return do(EffectAllow, "a job of the run that claims this host may start").answering(v.progress())
	}
	return v.register()
}

// hasRunner reports whether there is anything of a runner on the host: one that is configured or being
// configured, its registration, or its listener.
func (v decider) hasRunner() bool {
	s := v.Observed
	return s.Registered.Phase != PhaseNone || s.Registration || s.Listener.Phase != ListenerNone
}

// hasOldRunner reports whether there is anything of a runner of another assignment on the host.
func (v decider) hasOldRunner() bool {
	s, a := v.Observed, v.runnerAssignment()
	return (s.Registered.Phase != PhaseNone || s.Registration) && s.Registered.Assignment != a ||
		s.Listener.Phase != ListenerNone && s.Listener.Assignment != a
}

// mayDiscard reports whether the registration with which the host waited cannot be used any more. Its record
// says so, and controld deletes the registration on GitHub.
func (v decider) mayDiscard() bool {
	s := v.Record.Standby
	return v.Record.State == lifecycle.StateClaimed && s != nil && s.Discarded
}

// discarded reports whether nothing is left of the runner with which the host waited. A clean-up that was cut short
// has no result, so it is begun again even if it had deleted the runner already.
func (v decider) discarded() bool {
	return !v.hasOldRunner() && (v.Observed.Cleaned.Phase == PhaseOK || v.hasRunner())
}

// discard removes the runner with which the host waited, so that it can register for its run. It is called while no job runs. The
// listener goes on for a moment: the labels may have been set although no answer came, and controld deletes the registration now. A job
// that GitHub has assigned by then shows itself, and runs to its end.
func (v decider) discard() Decision {
	s := v.Observed
	if at := v.Record.UpdatedAt.Add(assignedPause); s.Listener.alive() && !v.Record.UpdatedAt.IsZero() && !reached(at, v.now) {
		return wait("claimed: a job that GitHub has assigned to the runner that the host waited with may begin").recheckAt(at)
	}
	if s.Listener.alive() {
		return v.stop("claimed, and the runner that the host waited with cannot be used")
	}
	switch p := s.Cleaned.of(v.Record.Assignment); p.Phase {
	case PhaseNone:
		return do(EffectClean, "claimed, and the runner that the host waited with cannot be used")
	case PhaseFailed:
		return v.lost(cmp.Or(p.Cause, lifecycle.CauseHost), cmp.Or(p.Detail, "the host could not be cleaned"))
	}
	return v.otherRunner()
}

func (v decider) otherRunner() Decision {
	s := v.Observed
	other := s.Registered.Assignment
	if l := s.Listener; l.Phase != ListenerNone && l.Assignment != v.runnerAssignment() {
		other = l.Assignment
	}
	return v.lost(lifecycle.CauseHost, fmt.Sprintf("a runner of assignment %d is left on the host", other))
}

// notRegisteredAgain handles a host in standby, or one that serves by standby, whose runner is not configured although it listened
// once. It does not register again under the same name: a runner that replaces another may get the jobs of labels that it no longer
// has (actions/runner#4225).
func (v decider) notRegisteredAgain(p Progress) Decision {
	return v.lost(cmp.Or(p.Cause, lifecycle.CauseHost), cmp.Or(p.Detail, "the runner of this assignment is no longer on the host"))
}

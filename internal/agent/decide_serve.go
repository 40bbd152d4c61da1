package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// serve makes the host listen for the jobs of its run, and keeps it listening.
func (v decider) serve() Decision {
	s := v.Observed
	switch {
	case s.Busy && s.Allowed.Standby: // the job waits in its hook for this
		return do(EffectAllow, fmt.Sprintf("%s may start, and a job waits for that", allowedBy(*v.Record))).answering(v.working())
	case s.Busy:
		return wait("a job runs").answering(v.working())
	case s.Cleaned.Phase == PhaseRunning || s.Removed.Phase == PhaseRunning:
		return wait("the clean-up of the last run is not over")
	case v.interrupted() && !v.jobOver():
		return v.leaveMachine()
	case v.mayDiscard() && s.Registered.Phase == PhaseRunning && v.hasOldRunner():
		return wait("claimed: the configuration of the runner that it waited with comes to its end first")
	case v.mayDiscard() && !v.discarded():
		return v.discard()
	case v.hasOldRunner(): // a clean host has none
		return v.otherRunner()
	case v.jobOver():
		return wait("its one job is done").answering(v.working())
	}
	if !s.Listener.alive() && s.Prepared.Phase != PhaseOK {
		return v.prepare()
	}
	if a := allowedBy(*v.Record); s.Allowed != a {
		return do(EffectAllow, fmt.Sprintf("%s may start", a)).answering(v.progress())
	}
	return v.register()
}

// jobOver reports whether a job-scoped host has begun its one job and no longer runs it. It waits for its
// release, whatever the state of its runner, which takes no other job.
func (v decider) jobOver() bool {
	return v.Record != nil && v.Record.JobsOf != "" && v.Observed.Jobs > 0 && !v.busy()
}

// interrupted reports whether the cloud has announced to reclaim the machine.
func (v decider) interrupted() bool { return !v.Observed.InterruptionAt.IsZero() }

// leaveMachine stops taking jobs: a new one would be lost with the machine. The
// runner's registration stays until a release brings a token to remove it.
func (v decider) leaveMachine() Decision {
	at := v.Observed.InterruptionAt.UTC().Format(time.RFC3339)
	a := Answer{
		Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseAWS,
		Detail: fmt.Sprintf("EC2 takes this machine at %s, so its runner takes no job any more", at),
	}
	if v.Observed.Listener.alive() {
		return v.stop("EC2 takes this machine, and no job runs").answering(a)
	}
	return wait("EC2 takes this machine").answering(a)
}

// mayRegister reports whether the record has the kind of registration that a host
// of its scope uses. A job-scoped host must not become a runner for more than its
// one job, nor a run-scoped one a runner for a single job.
func (v decider) mayRegister() bool {
	if v.Record.JobsOf != "" {
		return v.usable(lifecycle.RegistrationJIT)
	}
	return v.usable(lifecycle.RegistrationToken)
}

func (v decider) prepare() Decision {
	switch p := v.Observed.Prepared; p.Phase {
	case PhaseNone:
		return do(EffectPrepare, "the pre-runner script has not run in this boot").answering(v.progress())
	case PhaseFailed:
		signal := lifecycle.SignalRegFailed
		if v.Record.State == lifecycle.StateCreated {
			signal = lifecycle.SignalFailed
		}
		return wait("the pre-runner script failed").answering(
			Answer{Signal: signal, Cause: lifecycle.CauseHost, Detail: scriptFailure(p)})
	}
	return wait("the pre-runner script runs").answering(v.progress())
}

func scriptFailure(p Progress) string { return explained("the pre-runner script failed", p.Detail) }

// explained returns what failed, with the log if there is one.
func explained(what, log string) string {
	if log == "" {
		return what
	}
	return what + ": " + log
}

// complaint matches a line of a log that probably describes an error.
var complaint = regexp.MustCompile(`(?i)error|exception|fail|denied|refused|cannot|could not|unable|invalid|not found`)

// explainedByLog adds the last line of a log that matches complaint. Below that first line, which is all that
// most readers see, it adds as many of the last lines of the log as fit into a report: the end of a log alone
// explains little. Lines are kept whole, so that secrets in them can be recognized.
func explainedByLog(what, log string) string {
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		if complaint.MatchString(line) && len(line) < detailLimit/2 {
			what = explained(what, strings.TrimSpace(line))
			break
		}
	}
	for log != "" && len(what)+len("\n")+len(log) > detailLimit {
		_, log, _ = strings.Cut(log, "\n")
	}
	if log == "" {
		return what
	}
	return what + "\n" + log
}

func (v decider) register() Decision {
	p := v.Observed.Registered.of(v.runnerAssignment())
	switch {
	case p.Phase == PhaseOK:
		return v.listen()
	case p.Phase == PhaseRunning:
		return wait("the runner is being configured").answering(v.progress())
	case v.registeredAhead():
		return v.notRegisteredAgain(p)
	case p.Phase == PhaseFailed:
		return v.registrationFailed(p)
	}
	switch {
	case v.Record.State == lifecycle.StateRunning:
		return v.lost(lifecycle.CauseHost, "the runner of this assignment is no longer on the host")
	case v.Record.Registration == nil:
		return wait("the record has no registration token yet").answering(v.progress())
	case !v.mayRegister():
		return v.lost(lifecycle.CauseGitHub, "the registration token has expired, or is not one to register with")
	}
	if standsBy(*v.Record) {
		return do(EffectRegister, "the host is clean, and the next run must not wait for this").answering(v.progress())
	}
	return do(EffectRegister, fmt.Sprintf("%s may come to this host", allowedBy(*v.Record))).answering(v.progress())
}

// registrationFailed retries by itself only if GitHub caused the failure, since a
// created host has until its threshold to become ready.
func (v decider) registrationFailed(p Progress) Decision {
	a := Answer{Signal: lifecycle.SignalRegFailed, Cause: p.Cause, Detail: cmp.Or(p.Detail, "the runner could not be configured")}
	if !p.Cause.Passes() || !v.mayRegister() {
		return wait("the registration failed").answering(a)
	}
	if at := retryAt(p); !reached(at, v.now) {
		return wait("the registration failed by GitHub's fault and is tried again").answering(a).recheckAt(at)
	}
	return do(EffectRegister, fmt.Sprintf("registration, attempt %d", p.Attempt+1)).answering(a)
}

func (v decider) listen() Decision {
	l := v.Observed.Listener
	if l.Assignment != v.runnerAssignment() {
		l = Listener{}
	}
	switch l.Phase {
	case ListenerStopping:
		return wait("the listener was asked to end").answering(v.progress()).recheckAt(l.At.Add(stopLimit))
	case ListenerListening:
		return wait("listening for jobs").answering(v.working())
	case ListenerStarting:
		return v.connecting(l)
	case ListenerExited:
		return v.exited(l)
	}
	return do(EffectListen, "the runner is configured").answering(v.progress())
}

func (v decider) connecting(l Listener) Decision {
	limit := l.StartedAt.Add(connectLimit)
	switch {
	case v.Record.State == lifecycle.StateRunning: // it connects when GitHub is back
		return wait("the listener is connecting again").answering(v.progress())
	case !reached(limit, v.now):
		return wait("the listener is connecting").answering(v.progress()).recheckAt(limit)
	}
	return wait("the listener does not connect").answering(Answer{
		Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseGitHub,
		Detail: explainedByLog(fmt.Sprintf("the listener has not reached GitHub for %s", connectLimit), l.Detail),
	})
}

// exited decides on the exit code of the listener (docs/design.md#github-and-ec2-facts).
func (v decider) exited(l Listener) Decision {
	refused := RefusedBy(l.Detail)
	switch {
	case l.Code == CodeDeprecated, l.Code == CodeTerminated && refused == lifecycle.CauseVersion:
		return v.lost(lifecycle.CauseVersion, explainedByLog(fmt.Sprintf("GitHub no longer accepts this version of the runner (exit code %d)", l.Code), l.Detail))
	case l.Code == CodeUpdating, l.Code == CodeUpdatingJobs:
		return v.lost(lifecycle.CauseVersion, explainedByLog(fmt.Sprintf(
			"the version of the runner is too old: GitHub made it update itself instead of taking a job (exit code %d)", l.Code), l.Detail))
	case v.jit() && (l.Code == CodeDone || (l.Code == CodeTerminated && l.Listened)):
		return v.leftWithoutJob(l)
	case l.Code == CodeDone && l.Unconfigured:
		return v.lost(lifecycle.CauseGitHub, explainedByLog("GitHub has deleted the registration, so the listener ended (exit code 0)", l.Detail))
	case l.Code == CodeTerminated:
		return v.lost(cmp.Or(refused, lifecycle.CauseHost), explainedByLog("the listener ended and does not restart (exit code 1)", l.Detail))
	}
	restarts := v.Memory.Restarts
	if l.At.Sub(l.StartedAt) >= stableTime {
		restarts = 0
	}
	if restarts >= restartLimit {
		return v.lost(exitCause(l.Code), explainedByLog(
			fmt.Sprintf("the listener ended %d times in a row, last with exit code %d", restarts+1, l.Code), l.Detail))
	}
	at := l.At.Add(restartPause(l.Code, restarts))
	if !reached(at, v.now) {
		return wait(fmt.Sprintf("the listener ended with exit code %d and is started again", l.Code)).
			answering(v.progress()).recheckAt(at)
	}
	return do(EffectListen, fmt.Sprintf("the listener ended with exit code %d", l.Code)).answering(v.progress())
}

// leftWithoutJob handles the listener of a JIT registration that has ended before a job began on this host.
// actions/runner exits with 0 when GitHub revokes its token, which is how it learns that its registration is
// gone, and with 1 when it then asks for a session. It also ends after a job that was canceled before its
// first step. None of that is the host's fault, unless its hook refused the job.
func (v decider) leftWithoutJob(l Listener) Decision {
	if run := v.refused(); run != "" {
		return v.lost(lifecycle.CauseHost, "its one job was refused: it is one of run "+run)
	}
	return v.lost(lifecycle.CauseGitHub, explainedByLog(fmt.Sprintf(
		"the listener ended without a job (exit code %d): its registration is gone from GitHub", l.Code), l.Detail))
}

func restartPause(code, restarts int) time.Duration {
	if code == CodeSessionConflict {
		return conflictWait
	}
	return doubled(restarts+1, restartBase, restartCap)
}

// exitCause returns who caused an exit code. A retryable error and a session conflict come from the server.
func exitCause(code int) lifecycle.Cause {
	if code == CodeRetryable || code == CodeSessionConflict {
		return lifecycle.CauseGitHub
	}
	return lifecycle.CauseHost
}

// lost reports that the host cannot serve this assignment and has stopped trying.
func (v decider) lost(c lifecycle.Cause, detail string) Decision {
	return wait("the runner is lost").answering(Answer{Signal: lifecycle.SignalRegFailed, Cause: c, Detail: detail})
}

// working returns the answer of a host that serves its run.
func (v decider) working() Answer {
	if v.Observed.Registered.Assignment != v.runnerAssignment() {
		return v.progress()
	}
	return Answer{Signal: lifecycle.SignalRegOK}
}

// progress returns the answer of a host that is getting ready. It reports that the
// pre-runner script succeeded where that is new, and never retracts a signal. A host
// in standby is clean, whether it listens or not.
func (v decider) progress() Answer {
	switch {
	case standsBy(*v.Record) && v.Observed.Cleaned.of(v.Record.Assignment).Phase == PhaseOK:
		return Answer{Signal: lifecycle.SignalRemoveRegOK}
	case v.Record.State == lifecycle.StateRunning:
		return Answer{Signal: lifecycle.SignalRegOK}
	case v.Record.State == lifecycle.StateCreated && v.Observed.Prepared.Phase == PhaseOK:
		return Answer{Signal: lifecycle.SignalOK}
	}
	return Answer{}
}

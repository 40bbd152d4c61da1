package lifecycle

import (
	"cmp"
	"fmt"
	"time"
)

// This file has the sentences of Decide, each with its code.

// reason is why Decide decides something: a code for programs and a sentence for people. The zero value is no
// reason.
type reason struct {
	code ReasonCode
	text string
}

// because makes a reason.
func because(code ReasonCode, format string, values ...any) reason {
	return reason{code, fmt.Sprintf(format, values...)}
}

// and continues the sentence of a reason.
func (r reason) and(text string) reason { return reason{r.code, r.text + text} }

// given reports whether there is a reason.
func (r reason) given() bool { return r.code != "" }

func keep(look time.Time, why reason) Decision {
	return Decision{Action: ActionKeep, CheckAt: look, Code: why.code, Reason: why.text}
}

func terminate(why reason) Decision { return act(ActionTerminate, why) }

func act(action Action, why reason) Decision {
	return Decision{Action: action, Code: why.code, Reason: why.text}
}

var (
	registering      = because(ReasonWaitingForRegistration, "starting: waiting for the agent to register")
	registeringAgain = because(ReasonWaitingForRegistration, "claimed: waiting for the agent to register")
	notReadyAgain    = because(ReasonRegistrationTimeout, "not ready by its threshold after it was claimed")
	busyEarly        = because(ReasonBusyBeforeReady, "busy before it was seen ready; a job is never ended by bookkeeping")

	runningJob       = because(ReasonRunningJob, "running a job")
	runningLastJob   = because(ReasonRunningJob, "running a job, until it is done or EC2 takes the machine back as announced")
	jobDone          = because(ReasonJobDone, "its one job is done")
	awaitingFirstJob = because(ReasonWaitingForFirstJob, "running: waiting for a first job, since nobody waited for the request")

	releasedBusy = because(ReasonReleasedBusy, "released while busy: the job may finish")
	draining     = because(ReasonDraining, "released while busy: waiting for the job to finish")
	notClean     = because(ReasonCleanUpTimeout, "not clean by its threshold after its release")
	removeToken  = because(ReasonRemoveToken, "the agent needs a remove token")
	freshToken   = because(ReasonRemoveToken, "the agent needs a fresh remove token")
	preparing    = because(ReasonWaitingForPreparation, "starting for the warm pool: waiting for the agent to prepare the host")
	cleaning     = because(ReasonWaitingForCleanUp, "released: waiting for the agent to deregister and clean up")

	noReuse       = because(ReasonNoReuse, "its pool does not reuse hosts")
	prepared      = because(ReasonPrepared, "prepared and clean, for the first run that claims it")
	clean         = because(ReasonClean, "deregistered and clean")
	leaveAdvised  = because(ReasonRebalanceAdvised, "EC2 recommends to leave the machine, and no run is on it")
	busyPooled    = because(ReasonBusyWhilePooled, "busy by its agent's word although pooled; a job is never ended by bookkeeping")
	githubAway    = because(ReasonGitHubUnavailable, "idle until its threshold, and nobody can be given a host while GitHub is away")
	idleTimeout   = because(ReasonIdleTimeout, "idle until its threshold")
	awaitingRun   = because(ReasonWaitingForRun, "idle: waiting for a run")
	interrupted   = because(ReasonInterruption, "EC2 announced an interruption and no job runs")
	replaced      = because(ReasonInterruption, "EC2 announced an interruption, and its request asks for another host in its place")
	holdRemoved   = because(ReasonFleetHoldRemoved, "the fleet's hold keeps it no more")
	deletesRunner = because(ReasonDeletingRunner, "removing what may be left of its registration")
	gone          = because(ReasonGone, "gone")
)

// failed is a failure that the agent reports, with its cause and the first line of its detail.
func (v decider) failed(code ReasonCode, what string) reason {
	why := what
	if v.Report.Cause != CauseNone {
		why += fmt.Sprintf(" (cause: %s)", v.Report.Cause)
	}
	if line := FirstLine(v.Report.Detail); line != "" {
		why += ": " + line
	}
	return reason{code, why}
}

func (v decider) preRunnerFailed() reason {
	return v.failed(ReasonPreRunnerFailed, "the pre-runner script failed")
}

// hasBeenSilent is the reason to end a host that is silent; doing says during what.
func (v decider) hasBeenSilent(doing string) reason {
	return because(ReasonSilent, "silent for %s %s", v.p.Silence, doing)
}

func (v decider) notReady() reason {
	return because(ReasonRegistrationTimeout, "not ready by its threshold, %s after launch", v.Record.Threshold.Sub(v.Record.CreatedAt))
}

func (v decider) notPrepared() reason {
	return because(ReasonPreparationTimeout, "not ready to serve by its threshold, %s after launch", v.Record.Threshold.Sub(v.Record.CreatedAt))
}

func (v decider) registered() reason {
	return because(ReasonRegistered, "registered for %s", v.Record.purpose())
}

func (v decider) busyTooLong() reason {
	return because(ReasonMaxRuntime, "never seen ready, and busy for longer than its maximum runtime of %s", v.Record.maxRuntime(v.p))
}

func (v decider) runtimeOver() reason {
	return because(ReasonMaxRuntime, "its maximum runtime of %s is over", v.Record.maxRuntime(v.p))
}

func (v decider) awaitingJobs() reason {
	return because(ReasonWaitingForJob, "running: waiting for %s", v.Record.work())
}

func (v decider) unattended() reason {
	return because(ReasonUnattended, "no job for %s, and nobody waited for the request", v.p.UnattendedTimeout)
}

func (v decider) noLongerBusy() reason {
	return because(ReasonNoLongerBusy, "no longer busy: %s to become clean", v.p.ReleaseTimeout)
}

func (v decider) deregistrationTimeout() reason {
	return v.failed(ReasonDeregistrationTimeout, fmt.Sprintf("not deregistered within %s", v.p.ExternalTimeout))
}

func (v decider) deregistrationDelayed() reason {
	return v.failed(ReasonDeregistrationDelayed, "deregistration is held up")
}

func (v decider) usedUp() reason {
	return because(ReasonMaxUses, "served %d runs, the most that its pool allows", v.Record.Uses)
}

// retiring is why a retiring host leaves.
func (r Record) retiring() reason {
	return reason{ReasonRetiring, cmp.Or(r.RetiringReason, "retiring")}
}

// unwanted is why the record's request has no use for the host; no reason if it has.
func (v decider) unwanted() reason {
	switch {
	case v.Request == nil || v.Request.Wants(v.Record.HostKey):
		return reason{}
	case v.Request.Released() && v.Record.JobsOf != "":
		return because(ReasonRequestReleased, "request %s was released", v.Record.RequestID)
	case v.Request.Released():
		return because(ReasonRunReleased, "run %s was released", v.Record.RunID)
	case v.Request.Outcome == OutcomeShort:
		return because(ReasonRequestShort, "request %s came out short and was rolled back", v.Record.RequestID)
	}
	return because(ReasonRequestSettled, "request %s was settled without this host", v.Record.RequestID)
}

// aged is the reason to end a host that is as old as its pool allows; no reason if it is not.
func (v decider) aged() reason {
	if !reached(v.Record.agesAt(v.p), v.now) {
		return reason{}
	}
	return because(ReasonMaxAge, "launched %s ago or more, the most that its pool allows", v.p.MaxAge)
}

// drifted is the reason to end a host that was launched from an older template; no reason if it was not.
func (v decider) drifted() reason {
	if drift := v.Record.Drifted(v.Template); drift != "" && v.p.Drift != DriftIgnore {
		return reason{ReasonTemplateDrift, drift}
	}
	return reason{}
}

func (v decider) machineGone() reason {
	return because(ReasonMachineGone, "%s says that the machine is gone", v.p.CloudName())
}

func (v decider) machineImpaired() reason {
	return because(ReasonMachineImpaired, "silent, and %s says that the machine is impaired or ending", v.p.CloudName())
}

func (v decider) endingMachine() reason {
	return because(ReasonEndingMachine, "telling %s to end the machine", v.p.CloudName())
}

func (v decider) awaitingMachineEnd() reason {
	return because(ReasonWaitingForMachineEnd, "waiting for %s to end the machine", v.p.CloudName())
}

func (v decider) machineStillRuns() reason {
	return because(ReasonMachineStillRuns, "%s still runs the machine", v.p.CloudName())
}

func (v decider) lostRunPending() reason {
	return because(ReasonLostRunPending, "run %s, which it left, is looked at first", v.Record.LostBy.RunID)
}

func (v decider) endConfirmed() reason {
	return because(ReasonEndConfirmed, "%s confirmed the end", v.p.CloudName())
}

// heldBack is why a host stays that would be ended, were it not for an operator's hold.
func (v decider) heldBack(d Decision) reason {
	by := "held by an operator"
	if v.Record.FleetHeld {
		by = "held with the whole fleet"
	}
	return because(ReasonHeld, "%s until %s; else it would be ended: %s", by, v.Record.Hold.UTC().Format(time.RFC3339), d.Reason)
}

// heldByFleet is why the fleet's hold keeps a host.
func (v decider) heldByFleet(h FleetHold, d Decision) reason {
	why := reason{ReasonFleetHeld, h.String()}
	if d.Ends() {
		return why.and("; else it would be ended: " + d.Reason)
	}
	return why
}

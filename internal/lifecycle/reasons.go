package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// This file has the sentences of Decide, each with its code.

// Reason is why something is decided: a code for programs and a sentence for people. The zero value is no reason.
type Reason struct {
	Code ReasonCode
	Text string
}

// Because makes a reason.
func Because(code ReasonCode, format string, values ...any) Reason {
	return Reason{code, fmt.Sprintf(format, values...)}
}

// And continues the sentence of a reason.
func (r Reason) And(text string) Reason { return Reason{r.Code, r.Text + text} }

// Given reports whether there is a reason.
func (r Reason) Given() bool { return r.Code != "" }

func keep(look time.Time, why Reason) Decision {
	return Decision{Action: ActionKeep, CheckAt: look, Code: why.Code, Reason: why.Text}
}

func terminate(why Reason) Decision { return act(ActionTerminate, why) }

func act(action Action, why Reason) Decision { return why.Decision(action) }

// Decision decides an action for the reason.
func (r Reason) Decision(action Action) Decision {
	return Decision{Action: action, Code: r.Code, Reason: r.Text}
}

var (
	registering       = Because(ReasonWaitingForRegistration, "starting: waiting for the agent to register")
	registeringAgain  = Because(ReasonWaitingForRegistration, "claimed: waiting for the agent to register")
	awaitingHeartbeat = Because(ReasonWaitingForRegistration, "claimed while its runner listened: waiting for a heartbeat of its agent")
	unheardExcused    = Because(ReasonManySilent, "past its threshold and not heard; many hosts may be silent at once, or its report was lost, so it is not ended")
	notReadyAgain     = Because(ReasonRegistrationTimeout, "not ready by its threshold after it was claimed")
	busyEarly         = Because(ReasonBusyBeforeReady, "busy before it was seen ready; a job is never ended by bookkeeping")

	runningJob       = Because(ReasonRunningJob, "running a job")
	runningLastJob   = Because(ReasonRunningJob, "running a job, until it is done or EC2 takes the machine back as announced")
	jobDone          = Because(ReasonJobDone, "its one job is done")
	awaitingFirstJob = Because(ReasonWaitingForFirstJob, "running: waiting for a first job, since no caller waited for the request")

	releasedBusy = Because(ReasonReleasedBusy, "released while busy: the job may finish")
	draining     = Because(ReasonDraining, "released while busy: waiting for the job to finish")
	notClean     = Because(ReasonCleanUpTimeout, "not clean by its threshold after its release")
	removeToken  = Because(ReasonRemoveToken, "the agent needs a remove token")
	freshToken   = Because(ReasonRemoveToken, "the agent needs a fresh remove token")
	preparing    = Because(ReasonWaitingForPreparation, "starting for the warm pool: waiting for the agent to prepare the host")
	cleaning     = Because(ReasonWaitingForCleanUp, "released: waiting for the agent to deregister and clean up")

	noReuse            = Because(ReasonNoReuse, "its pool does not reuse hosts")
	untrustedRun       = Because(ReasonUntrustedRun, "its run could become root, and what it has left in docker may not be kept")
	unjudgedRun        = Because(ReasonUnjudgedRun, "clean: GitHub has not said yet whether its run, which could become root, may leave anything in docker")
	prepared           = Because(ReasonPrepared, "prepared and clean, for the first run that claims it")
	clean              = Because(ReasonClean, "deregistered and clean")
	leaveAdvised       = Because(ReasonRebalanceAdvised, "EC2 recommends to leave the machine, and no run is on it")
	busyPooled         = Because(ReasonBusyWhilePooled, "busy by its agent's word although pooled; a job is never ended by bookkeeping")
	githubAway         = Because(ReasonGitHubUnavailable, "idle until its threshold, and no run can be given a host while GitHub is away")
	idleTimeout        = Because(ReasonIdleTimeout, "idle until its threshold")
	freshStopped       = Because(ReasonIdleStopped, "prepared, and its machine is stopped until the first run needs it")
	idleStopped        = Because(ReasonIdleStopped, "idle until its threshold, and its machine is stopped for the next run")
	stoppedTimeout     = Because(ReasonStoppedTimeout, "stopped until its threshold, and no run needed it")
	stoppedAwaitingRun = Because(ReasonWaitingForRun, "idle: its machine is stopped, and is started for the next run")
	notStarted         = Because(ReasonRegistrationTimeout, "not ready by its threshold after its machine was to start")
	rootReset          = Because(ReasonRootReset, "deregistered and clean, and its root volume is replaced before the next run")
	resetHeld          = Because(ReasonHeld, "clean, and held by an operator: its root volume is replaced after that")
	preparingAgain     = Because(ReasonWaitingForPreparation, "its root volume is new: waiting for the agent to prepare the host")
	awaitingRun        = Because(ReasonWaitingForRun, "idle: waiting for a run")
	restingAwaitingRun = Because(ReasonWaitingForRun, "idle: waiting for a run, and resting")
	registeringAhead   = Because(ReasonWaitingForRun, "idle: waiting for a run, and registering ahead of need")
	listening          = Because(ReasonListening, "its runner listens, so a run that claims it only has to set its labels")
	hotAwaitingRun     = Because(ReasonWaitingForRun, "hot: its runner listens, waiting for a run")
	renewed            = Because(ReasonStandbyRenewed, "registered ahead of need for %s, so it registers again", standbyMaxAge)
	interrupted        = Because(ReasonInterruption, "EC2 announced an interruption and no job runs")
	replaced           = Because(ReasonInterruption, "EC2 announced an interruption, and its request asks for another host in its place")
	recordRestored     = Because(ReasonRecordRestored, "an older state of its record was restored: its agent reports for a later assignment")
	busyRestored       = Because(ReasonRecordRestored, "busy in an assignment that its restored record does not have; a job is never ended by bookkeeping")
	notHeardYet        = Because(ReasonNotHeardYet, "its agent could not report yet, and its record may be a restored one, so it is not ended")
	holdRemoved        = Because(ReasonFleetHoldRemoved, "the fleet's hold keeps it no more")
	deletesRunner      = Because(ReasonDeletingRunner, "removing what may be left of its registration")
	gone               = Because(ReasonGone, "gone")
)

// failed is a failure that the agent reports, with its cause and the first line of its detail.
func (v *decider) failed(code ReasonCode, what string) Reason {
	why := what
	if v.Report.Cause != CauseNone {
		why += fmt.Sprintf(" (cause: %s)", v.Report.Cause)
	}
	if said := line.First(v.Report.Detail); said != "" {
		why += ": " + said
	}
	return Reason{code, why}
}

// runnerFailed is a failure of the runner, under its own code if GitHub refuses the runner's version.
func (v *decider) runnerFailed(code ReasonCode, what string) Reason {
	if v.Report.Cause == CauseVersion {
		code = ReasonVersionRefused
	}
	return v.failed(code, what)
}

func (v *decider) preRunnerFailed() Reason {
	return v.failed(ReasonPreRunnerFailed, "the pre-runner script failed")
}

// hasBeenSilent is the reason to end a host that is silent; doing says during what.
func (v *decider) hasBeenSilent(doing string) Reason {
	return Because(ReasonSilent, "silent for %s %s", v.p.Silence, doing)
}

func (v *decider) notReady() Reason {
	return Because(ReasonRegistrationTimeout, "not ready by its threshold, %s after launch", v.Record.Threshold.Sub(v.Record.CreatedAt))
}

func (v *decider) notPrepared() Reason {
	return Because(ReasonPreparationTimeout, "not ready to serve by its threshold, %s after launch", v.Record.Threshold.Sub(v.Record.CreatedAt))
}

func (v *decider) registered() Reason {
	return Because(ReasonRegistered, "registered for %s", v.Record.purpose())
}

func (v *decider) labeled() Reason {
	return Because(ReasonLabeled, "its runner registered before the claim, and has the labels of run %s", v.Record.RunID)
}

func (v *decider) busyTooLong() Reason {
	return Because(ReasonMaxRuntime, "never seen ready, and busy for longer than its maximum runtime of %s", v.Record.maxRuntime(v.p))
}

func (v *decider) runtimeOver() Reason {
	return Because(ReasonMaxRuntime, "its maximum runtime of %s is over", v.Record.maxRuntime(v.p))
}

func (v *decider) awaitingJobs() Reason {
	return Because(ReasonWaitingForJob, "running: waiting for %s", v.Record.work())
}

func (v *decider) unattended() Reason {
	return Because(ReasonUnattended, "no job for %s, and no caller waited for the request", v.p.UnattendedTimeout)
}

func (v *decider) noLongerBusy() Reason {
	return Because(ReasonNoLongerBusy, "no longer busy: %s to become clean", v.p.ReleaseTimeout)
}

func (v *decider) notListening() Reason {
	return Because(ReasonStandbyFailed, "its registration ahead of need did not listen within %s", v.p.ClaimTimeout)
}

// registrationLost is why a host that was claimed while its runner listened has to register.
func (v *decider) registrationLost() Reason {
	if v.runnerGone() {
		return Because(ReasonReregistered, "GitHub could not give its runner the labels of the run, so it registers again")
	}
	return v.runnerFailed(ReasonReregistered, "the runner that it waited with was lost, so it registers again")
}

func (v *decider) deregistrationTimeout() Reason {
	return v.failed(ReasonDeregistrationTimeout, fmt.Sprintf("not deregistered within %s", v.p.ExternalTimeout))
}

func (v *decider) deregistrationDelayed() Reason {
	return v.failed(ReasonDeregistrationDelayed, "deregistration is held up")
}

func (v *decider) usedUp() Reason {
	return Because(ReasonMaxUses, "served %s, the most that its pool allows", plural.Of(v.Record.Uses, "run", "runs"))
}

// retiring is why a retiring host leaves.
func (r Record) retiring() Reason {
	return Reason{ReasonRetiring, cmp.Or(r.RetiringReason, "retiring")}
}

// unwanted is why the record's request has no use for the host; no reason if it has.
func (v *decider) unwanted() Reason {
	switch {
	case v.Request == nil || v.Request.Wants(v.Record) && !v.Excess:
		return Reason{}
	case v.Request.Wants(v.Record):
		return Because(ReasonRequestExceeded, "request %s has more hosts than it has reserved", v.Record.RequestID)
	case v.Request.Released() && v.Record.JobsOf != "":
		return Because(ReasonRequestReleased, "request %s was released", v.Record.RequestID)
	case v.Request.Released():
		return Because(ReasonRunReleased, "run %s was released", v.Record.RunID)
	case v.Request.Outcome == OutcomeShort:
		return Because(ReasonRequestShort, "request %s came out short and was rolled back", v.Record.RequestID)
	}
	return Because(ReasonRequestSettled, "request %s was settled without this host", v.Record.RequestID)
}

// aged is the reason to end a host that is as old as its pool allows; no reason if it is not.
func (v *decider) aged() Reason {
	if !reached(v.Record.agesAt(v.p), v.now) {
		return Reason{}
	}
	return Because(ReasonMaxAge, "launched %s ago or more, the most that its pool allows", v.p.MaxAge)
}

// drifted is the reason to end a host that was launched from an older template; no reason if it was not.
func (v *decider) drifted() Reason {
	if drift := v.Record.Drifted(v.Template); drift != "" && v.p.Drift != DriftIgnore {
		return Reason{ReasonTemplateDrift, drift}
	}
	return Reason{}
}

func (v *decider) machineGone() Reason {
	if why := v.Cloud.EndReason; why != "" {
		return Because(ReasonMachineGone, "%s says that the machine is gone: %s", v.p.CloudName(), why)
	}
	return Because(ReasonMachineGone, "%s says that the machine is gone", v.p.CloudName())
}

func (v *decider) machineImpaired() Reason {
	return Because(ReasonMachineImpaired, "silent, and %s says that the machine is impaired or ending", v.p.CloudName())
}

func (v *decider) stoppingMachine() Reason {
	return Because(ReasonStoppingMachine, "%s is to stop the machine, since no run needs it", v.p.CloudName())
}

func (v *decider) machineStopped() Reason {
	return Because(ReasonMachineStopped, "%s has stopped the machine", v.p.CloudName())
}

func (v *decider) notStopped() Reason {
	return Because(ReasonStopTimeout, "%s did not stop the machine within %s", v.p.CloudName(), v.stopTimeout())
}

func (v *decider) startingMachine() Reason {
	return Because(ReasonStartingMachine, "claimed while it was stopped: waiting for %s to start the machine", v.p.CloudName())
}

func (v *decider) noCapacity() Reason {
	return Because(ReasonNoCapacity, "%s cannot start the machine now: %s", v.p.CloudName(), line.First(v.StartShort))
}

func (v *decider) replacingRoot() Reason {
	return Because(ReasonRootReset, "%s is to replace the root volume", v.p.CloudName())
}

func (v *decider) rootReplaced() Reason {
	return Because(ReasonRootReplaced, "%s has replaced the root volume", v.p.CloudName())
}

func (v *decider) rootRefused() Reason {
	return Because(ReasonRootFailed, "its root volume is not replaced: %s", line.First(v.RootRefused))
}

func (v *decider) rootFailed() Reason {
	return Because(ReasonRootFailed, "%s could not replace the root volume: task %s is %s", v.p.CloudName(), v.RootTask.ID, v.RootTask.Said)
}

func (v *decider) rootTimeout() Reason {
	return Because(ReasonRootTimeout, "%s did not replace the root volume within %s", v.p.CloudName(), replaceTimeout)
}

// ready is why a fresh host is pooled.
func (v *decider) ready() Reason {
	if v.Record.Renewed() && v.Record.TrustKey != "" {
		return Because(ReasonPrepared, "prepared, with a new root volume")
	}
	return prepared
}

func (v *decider) endingMachine() Reason {
	return Because(ReasonEndingMachine, "telling %s to end the machine", v.p.CloudName())
}

func (v *decider) awaitingMachineEnd() Reason {
	return Because(ReasonWaitingForMachineEnd, "waiting for %s to end the machine", v.p.CloudName())
}

func (v *decider) machineStillRuns() Reason {
	return Because(ReasonMachineStillRuns, "%s still runs the machine", v.p.CloudName())
}

func (v *decider) endNotShown() Reason {
	return Because(ReasonWaitingForMachineEnd, "%s does not show the machine, which may still run: its end counts as confirmed an hour after the record ended", v.p.CloudName())
}

func (v *decider) lostRunPending() Reason {
	return Because(ReasonLostRunPending, "run %s, which it left, is looked at first", v.Record.LostBy.RunID)
}

func (v *decider) endConfirmed() Reason {
	return Because(ReasonEndConfirmed, "%s confirmed the end", v.p.CloudName())
}

// heldBack is why a host stays that would be ended, were it not for an operator's hold.
func (v *decider) heldBack(d Decision) Reason {
	by := "held by an operator"
	if v.Record.FleetHeld {
		by = "held with the whole fleet"
	}
	return Because(ReasonHeld, "%s until %s; else it would be ended: %s", by, v.Record.Hold.UTC().Format(time.RFC3339), d.Reason)
}

// heldByFleet is why the fleet's hold keeps a host.
func (v *decider) heldByFleet(h fleethold.Hold, d Decision) Reason {
	why := Reason{ReasonFleetHeld, h.String()}
	if d.Ends() {
		return why.And("; else it would be ended: " + d.Reason)
	}
	return why
}

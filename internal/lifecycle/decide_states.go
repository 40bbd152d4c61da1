package lifecycle

import (
	"slices"
	"time"
)

// created decides for a host that was launched and is not yet ready.
func (v *decider) created() Decision {
	r := v.Record
	if d, ok := v.becomesReady(); ok {
		return d
	}
	if d, ok := v.busyEarly(); ok {
		return d
	}
	switch {
	case v.signal() == SignalFailed:
		return terminate(v.preRunnerFailed())
	case v.signal() == SignalRegFailed && (!v.Report.Cause.external() || v.Report.Cause == CauseVersion):
		return terminate(v.runnerFailed(ReasonRegistrationFailed, "registration failed"))
	case v.unwanted().Given():
		return terminate(v.unwanted().And(" before the host was ready"))
	case v.silent():
		return terminate(v.hasBeenSilent("while starting"))
	case v.excused():
		return keep(v.now.Add(v.p.DrainPoll), unheardExcused)
	case v.expired():
		return terminate(v.notReady())
	}
	return keep(r.Threshold, registering)
}

// claimed decides for a host that was taken from the pool and is not yet ready.
func (v *decider) claimed() Decision {
	r := v.Record
	if d, ok := v.claimedHot(); ok {
		return d
	}
	if d, ok := v.becomesReady(); ok {
		return d
	}
	if d, ok := v.busyEarly(); ok {
		return d
	}
	if v.booting() {
		return v.starting()
	}
	switch {
	case v.silent():
		return terminate(v.hasBeenSilent("after it was claimed"))
	case v.signal() == SignalRegFailed:
		return v.registrationFailed()
	case v.unwanted().Given() && (v.excused() || !v.expired()):
		return act(ActionReturn, v.unwanted().And(" before the host was ready"))
	case v.excused() && v.MassSilence: // its run gets another host, and this one is not ended
		return act(ActionReturn, unheardExcused)
	case v.excused() && v.reportLost() && v.Listened(v.now, v.p.Silence):
		return act(ActionReturn, unheardExcused)
	case v.excused():
		return keep(v.now.Add(v.p.DrainPoll), unheardExcused)
	case v.expired():
		return terminate(notReadyAgain)
	}
	if r.servesByStandby() && r.Standby.RunnerID != 0 {
		return keep(r.Threshold, awaitingHeartbeat)
	}
	return keep(r.Threshold, registeringAgain)
}

// becomesReady is the only way to running, except for a host whose runner listened when it was claimed: see claimedHot.
// A host that its request no longer wants, or that is past its threshold, does not become ready unless a job already
// runs on it.
func (v *decider) becomesReady() (Decision, bool) {
	if v.signal() != SignalRegOK || !v.fresh() || v.Record.servesByStandby() {
		return Decision{}, false
	}
	if !v.busy() && (v.unwanted().Given() || v.expired()) {
		return Decision{}, false
	}
	return v.readied(v.registered()), true
}

// readied makes the host ready, and says when it is looked at next.
func (v *decider) readied(why Reason) Decision {
	d := act(ActionReady, why)
	d.AgentKey = v.newKey()
	if v.Request != nil && v.Request.Unattended {
		d.CheckAt = v.now.Add(v.p.UnattendedTimeout)
	}
	d.CheckAt = v.lookBy(d.CheckAt)
	if v.jobOver() {
		d.CheckAt = v.now
	}
	return d
}

// busyEarly keeps a host that runs a job although it was never seen ready. The
// job may run for as long as any other.
func (v *decider) busyEarly() (Decision, bool) {
	switch runtime := v.Record.maxRuntime(v.p); {
	case !v.busy():
		return Decision{}, false
	case reached(v.Record.Threshold.Add(runtime), v.now):
		return terminate(v.busyTooLong()), true
	}
	return keep(v.now.Add(v.p.DrainPoll), busyEarly), true
}

func (v *decider) registrationFailed() Decision {
	ownFault := !v.Report.Cause.external()
	if ownFault && v.Record.ClaimFailures >= claimFailuresAllowed {
		return terminate(v.failed(ReasonRegistrationFailedTwice, "registration failed for the second time in a row"))
	}
	d := act(ActionReturn, v.runnerFailed(ReasonRegistrationFailed, "registration failed"))
	d.HostFault = ownFault
	return d
}

// running decides for a host that serves its run. A busy one ends only when its
// runtime is over, its machine is lost or an operator orders it.
func (v *decider) running() Decision {
	r := v.Record
	switch {
	case v.expired() && !(v.unheard() && v.unwanted().Given()): // else it leaves its run, and is ended once it could be heard
		return terminate(v.runtimeOver())
	case v.unwanted().Given():
		d := act(ActionRelease, v.unwanted())
		d.Busy = v.Report == nil || v.busy()
		return d
	case v.busy() && v.interrupted():
		return keep(earliest(r.Threshold, v.now.Add(v.p.DrainPoll)), runningLastJob)
	case v.busy():
		return keep(v.lookBy(r.Threshold), runningJob)
	case v.jobOver():
		return act(ActionRelease, jobDone)
	case v.signal() == SignalRegFailed:
		return act(ActionRelease, v.runnerFailed(ReasonRunnerLost, "the runner was lost"))
	}
	return v.runningIdle()
}

// jobOver reports whether a job-scoped host has begun and ended its one job, with whatever conclusion. A
// report under the previous assignment is about another job.
func (v *decider) jobOver() bool {
	return v.Record.JobsOf != "" && v.acknowledged() && v.Report.Jobs > 0 && !v.busy()
}

// lookBy is when a host that is, or becomes, running is looked at next: at t, or sooner for a job-scoped one,
// since the webhook about the end of its job may be lost.
func (v *decider) lookBy(t time.Time) time.Time {
	if v.Record.JobsOf == "" {
		return t
	}
	return earliest(t, v.now.Add(v.p.JobPoll))
}

// runningIdle decides for a ready host without a job. If no caller received the
// answer that it is ready, its run may never use it.
func (v *decider) runningIdle() Decision {
	r := v.Record
	if v.Request == nil || !v.Request.Unattended || !v.acknowledged() || v.Report.Jobs > 0 {
		return keep(v.lookBy(r.Threshold), v.awaitingJobs())
	}
	readyAt := r.RuntimeEndsAt.Add(-r.maxRuntime(v.p))
	end := readyAt.Add(v.p.UnattendedTimeout)
	if reached(end, v.now) {
		return act(ActionRelease, v.unattended())
	}
	return keep(v.lookBy(earliest(end, r.Threshold)), awaitingFirstJob)
}

// releasing decides for a host without a run that is not yet clean. An unused
// host is made ready to serve in the same way as one that has served.
func (v *decider) releasing() Decision {
	if v.busy() {
		return v.draining()
	}
	switch {
	case v.signal() == SignalRemoveRegOK && v.fresh():
		return v.clean()
	case v.signal() == SignalFailed && v.Record.Fresh():
		return terminate(v.preRunnerFailed())
	case v.silent():
		return terminate(v.hasBeenSilent("while it was " + v.releasingWord()))
	case v.drained():
		return act(ActionReleaseClock, v.noLongerBusy())
	case v.signal() == SignalRemoveRegFailed:
		return v.removalFailed()
	case v.excused():
		return keep(v.now.Add(v.p.DrainPoll), unheardExcused)
	case v.expired() && v.Record.Fresh():
		return terminate(v.notPrepared())
	case v.expired():
		return terminate(notClean)
	case v.needsToken():
		return act(ActionProvideToken, removeToken)
	}
	if v.Record.Renewed() {
		return keep(v.now.Add(v.p.ReleasePoll), preparingAgain)
	}
	if v.Record.Unused() {
		return keep(v.now.Add(v.p.ReleasePoll), preparing)
	}
	return keep(v.now.Add(v.p.ReleasePoll), cleaning)
}

func (v *decider) releasingWord() string {
	if v.Record.Fresh() {
		return "starting"
	}
	return "released"
}

// draining decides for a host that was released while a job runs. The job may run
// to the end of the host's runtime, which counts from when it became ready.
func (v *decider) draining() Decision {
	r := v.Record
	if r.RuntimeEndsAt.IsZero() || r.Threshold.Before(r.RuntimeEndsAt) {
		return act(ActionDrain, releasedBusy)
	}
	if v.expired() {
		return terminate(v.runtimeOver())
	}
	return keep(earliest(r.Threshold, v.now.Add(v.p.DrainPoll)), draining)
}

// drained reports whether a host that was released while busy is no longer busy,
// as its agent says under this assignment. The release begins only now.
func (v *decider) drained() bool {
	r := v.Record
	return v.acknowledged() && r.Threshold.Equal(r.RuntimeEndsAt) && !v.expired() &&
		!r.Threshold.Equal(v.now.Add(v.p.ReleaseTimeout))
}

// acknowledged reports whether the agent has seen this assignment.
func (v *decider) acknowledged() bool {
	p := v.Report
	return p != nil && p.Assignment == v.Record.Assignment && (p.RunID == "" || p.RunID == v.Record.RunID)
}

// needsToken reports whether the agent cannot deregister with what the record has. A job-scoped host never
// needs to: its registration ends with its job or is deleted by name. While GitHub gives no token, it is
// asked only when the record is due, not at every look.
func (v *decider) needsToken() bool {
	r := v.Record
	if r.RunnerName == "" || r.JobsOf != "" || v.now.Before(r.DueAt) {
		return false
	}
	return r.Registration == nil || (!r.Registration.ExpiresAt.IsZero() && reached(r.Registration.ExpiresAt, v.now))
}

// clean decides for a host that says that it is clean.
func (v *decider) clean() Decision {
	proof, refused := v.proof()
	if refused.Given() {
		return terminate(refused)
	}
	d := v.cleaned()
	d.AgentKey, d.Statement = v.newKey(), proof
	return d
}

// cleaned decides for a clean host, which may serve again if its pool's rules allow it.
func (v *decider) cleaned() Decision {
	r := v.Record
	switch {
	case v.outlivedReuse():
		return terminate(noReuse)
	case v.drifted().Given():
		return terminate(v.drifted())
	case r.ReasonCode == ReasonVersionRefused && r.Drifted(v.Template) != "": // whatever the pool does about drift otherwise
		return terminate(Because(ReasonVersionRefused, "GitHub refused the version of its runner, and %s", r.Drifted(v.Template)))
	case r.Retiring:
		return terminate(r.retiring())
	case v.advised():
		return terminate(leaveAdvised)
	case v.p.MaxUses > 0 && r.Uses >= v.p.MaxUses:
		return terminate(v.usedUp())
	case v.aged().Given():
		return terminate(v.aged())
	case v.untrusted():
		return v.outOfTrust()
	}
	if v.resets() {
		return v.mayReset()
	}
	if r.Fresh() {
		return act(ActionPool, v.ready())
	}
	d := act(ActionPool, clean)
	d.StandsBy = v.mayStandBy()
	if v.Report != nil {
		d.Caches = v.Report.Caches
	}
	return d
}

// untrusted reports whether the last run of the host could write to docker's store, and may leave nothing there. It was root, so no clean-up of the same
// machine is to be believed. A run that has left before its host was ready is judged too: its job may have kept the agent from saying that it was.
func (v *decider) untrusted() bool {
	r := v.Record
	return v.p.DockerCache != "" && r.RequestID != "" && !r.Fresh() && !slices.Contains(r.KeepCaches, v.p.DockerCache)
}

// outOfTrust ends a host after a run that may not write docker's store. If GitHub did not judge the run at its release, it is asked again now that the host is
// clean, for as long as a clean-up may wait for it: a host does not end for an outage alone. What runs have added to docker is deleted by then in any case.
func (v *decider) outOfTrust() Decision {
	end := v.Record.ReleasedAt.Add(v.p.ExternalTimeout)
	if !v.Record.Unjudged || reached(end, v.now) {
		return terminate(untrustedRun)
	}
	d := keep(earliest(end, v.now.Add(v.p.DrainPoll)), unjudgedRun)
	d.Judges = true
	return d
}

// outlivedReuse reports whether a run had the machine, and its pool lets no other one have it. A new root volume changes nothing about that. A host that is
// idle then was pooled, or reset, before its pool was changed.
func (v *decider) outlivedReuse() bool {
	return v.p.Reuse == ReuseNone && (v.Record.Uses > 0 || v.Record.TrustKey != "")
}

// advised reports whether EC2 recommended to leave the machine because it is likely to take it back. Most
// such machines work on for hours, so a run keeps its host, and no other run gets it.
func (v *decider) advised() bool { return v.Report != nil && !v.Report.RebalanceAt.IsZero() }

func (v *decider) removalFailed() Decision {
	r := v.Record
	if !v.Report.Cause.external() {
		d := terminate(v.failed(ReasonCleanUpFailed, "deregistration or clean-up failed"))
		d.Statement = v.proofOfFailure()
		return d
	}
	end := r.ReleasedAt.Add(v.p.ExternalTimeout)
	switch {
	case reached(end, v.now):
		return terminate(v.deregistrationTimeout())
	case r.Threshold.Before(end):
		return act(ActionExtend, v.deregistrationDelayed())
	case v.needsToken():
		return act(ActionProvideToken, freshToken)
	}
	return keep(earliest(end, v.now.Add(v.p.DrainPoll)), v.deregistrationDelayed())
}

// pooled decides for a host that is clean and waits for a run.
func (v *decider) pooled() Decision {
	r := v.Record
	if v.busy() && v.now.Before(r.PooledAt.Add(r.maxRuntime(v.p))) {
		return keep(v.now.Add(v.p.DrainPoll), busyPooled)
	}
	switch {
	case r.Retiring && v.drifted().Given():
		return terminate(v.drifted())
	case r.Retiring:
		return terminate(r.retiring())
	case r.Renewed() && v.outlivedReuse(): // a run of any repository could claim it
		return terminate(noReuse)
	case v.advised():
		return terminate(leaveAdvised)
	case v.silent():
		return terminate(v.hasBeenSilent("while idle"))
	case v.aged().Given():
		return terminate(v.aged())
	case r.StopsNext() && v.mayStop():
		return act(ActionStop, freshStopped)
	case v.expired() && v.GitHubUnavailable && v.now.Before(r.PooledAt.Add(v.p.ExternalTimeout)):
		return act(ActionExtend, githubAway)
	case v.expired() && v.mayStop():
		return act(ActionStop, idleStopped)
	case v.expired():
		return terminate(idleTimeout)
	case r.Warming():
		return v.warming()
	}
	if r.Hot() {
		if d, ok := v.hot(); ok {
			return d
		}
		return keep(earliest(earliest(r.Threshold, r.agesAt(v.p)), r.PooledAt.Add(standbyMaxAge)), hotAwaitingRun)
	}
	if r.Resting() {
		return keep(v.p.RestLook(r, v.now), restingAwaitingRun)
	}
	return keep(v.p.RestLook(r, v.now), awaitingRun)
}

// terminated decides for a host whose record has ended. The machine follows, then
// its registration, and then the record can be forgotten.
func (v *decider) terminated() Decision {
	r := v.Record
	switch {
	case r.DueAt.IsZero():
		return keep(time.Time{}, gone)
	case v.Cloud == nil:
		return v.endMachine(v.endingMachine())
	case v.Cloud.State == MachineEnding:
		return keep(v.now.Add(v.p.EndPoll), v.awaitingMachineEnd())
	case v.Cloud.State != MachineGone:
		return v.endMachine(v.machineStillRuns())
	case !v.Cloud.Shown() && v.now.Before(r.UpdatedAt.Add(shownAfterEnd)):
		return keep(v.now.Add(time.Minute), v.endNotShown())
	case r.RunnerName != "" && !v.runnerGone() && v.now.Before(r.UpdatedAt.Add(v.p.ForgetAfter)):
		d := act(ActionDeleteRunner, deletesRunner)
		d.CheckAt = v.now.Add(v.p.DrainPoll)
		return d
	case r.LostBy != nil:
		return keep(v.now.Add(v.p.EndPoll), v.lostRunPending())
	}
	d := act(ActionForget, v.endConfirmed())
	d.EndedAt = v.Cloud.EndedAt
	return d
}

// shownAfterEnd is for how long EC2 shows a machine that has ended, about. Until then one that it does not show may run, and keeps its room.
const shownAfterEnd = time.Hour

func (v *decider) endMachine(why Reason) Decision {
	d := act(ActionEndMachine, why)
	d.CheckAt = v.now.Add(v.p.EndPoll)
	return d
}

package lifecycle

import (
	"cmp"
	"fmt"
	"time"
)

// created decides for a host that was launched and is not yet ready.
func (v decider) created() Decision {
	r := v.Record
	if d, ok := v.becomesReady(); ok {
		return d
	}
	if d, ok := v.busyEarly(); ok {
		return d
	}
	switch {
	case v.signal() == SignalFailed:
		return terminate(v.failure("the pre-runner script failed"))
	case v.signal() == SignalRegFailed && !v.Report.Cause.external():
		return terminate(v.failure("registration failed"))
	case v.unwanted() != "":
		return terminate(v.unwanted() + " before the host was ready")
	case v.silent():
		return terminate(fmt.Sprintf("silent for %s while starting", v.p.Silence))
	case v.expired():
		return terminate(fmt.Sprintf("not ready by its threshold, %s after launch", r.Threshold.Sub(r.CreatedAt)))
	}
	return keep(r.Threshold, "starting: waiting for the agent to register")
}

// claimed decides for a host that was taken from the pool and is not yet ready.
func (v decider) claimed() Decision {
	r := v.Record
	if d, ok := v.becomesReady(); ok {
		return d
	}
	if d, ok := v.busyEarly(); ok {
		return d
	}
	switch {
	case v.silent():
		return terminate(fmt.Sprintf("silent for %s after it was claimed", v.p.Silence))
	case v.signal() == SignalRegFailed:
		return v.registrationFailed()
	case v.expired():
		return terminate("not ready by its threshold after it was claimed")
	case v.unwanted() != "":
		return Decision{Action: ActionReturn, Reason: v.unwanted() + " before the host was ready"}
	}
	return keep(r.Threshold, "claimed: waiting for the agent to register")
}

// becomesReady is the only way to running. A host that its request no longer
// wants, or that is past its threshold, does not become ready unless a job
// already runs on it.
func (v decider) becomesReady() (Decision, bool) {
	if v.signal() != SignalRegOK || !v.fresh() {
		return Decision{}, false
	}
	if !v.busy() && (v.unwanted() != "" || v.expired()) {
		return Decision{}, false
	}
	d := Decision{Action: ActionReady, Reason: "registered for " + v.Record.purpose()}
	if v.Request != nil && v.Request.Unattended {
		d.CheckAt = v.now.Add(v.p.UnattendedTimeout)
	}
	d.CheckAt = v.lookBy(d.CheckAt)
	if v.jobOver() {
		d.CheckAt = v.now
	}
	return d, true
}

// busyEarly keeps a host that runs a job although it was never seen ready. The
// job may run for as long as any other.
func (v decider) busyEarly() (Decision, bool) {
	switch runtime := v.Record.maxRuntime(v.p); {
	case !v.busy():
		return Decision{}, false
	case reached(v.Record.Threshold.Add(runtime), v.now):
		return terminate(fmt.Sprintf("never seen ready, and busy for longer than its maximum runtime of %s", runtime)), true
	}
	return keep(v.now.Add(v.p.DrainPoll), "busy before it was seen ready; a job is never ended by bookkeeping"), true
}

func (v decider) registrationFailed() Decision {
	ownFault := !v.Report.Cause.external()
	if ownFault && v.Record.ClaimFailures >= claimFailuresAllowed {
		return terminate(v.failure("registration failed for the second time in a row"))
	}
	return Decision{Action: ActionReturn, Reason: v.failure("registration failed"), HostFault: ownFault}
}

// running decides for a host that serves its run. A busy one ends only when its
// runtime is over, its machine is lost or an operator orders it.
func (v decider) running() Decision {
	r := v.Record
	switch {
	case v.expired():
		return terminate(fmt.Sprintf("its maximum runtime of %s is over", r.maxRuntime(v.p)))
	case v.unwanted() != "":
		return Decision{Action: ActionRelease, Busy: v.Report == nil || v.busy(), Reason: v.unwanted()}
	case v.busy() && v.interrupted():
		return keep(earliest(r.Threshold, v.now.Add(v.p.DrainPoll)), "running a job, until it is done or EC2 takes the machine back as announced")
	case v.busy():
		return keep(v.lookBy(r.Threshold), "running a job")
	case v.jobOver():
		return Decision{Action: ActionRelease, Reason: "its one job is done"}
	case v.signal() == SignalRegFailed:
		return Decision{Action: ActionRelease, Reason: v.failure("the runner was lost")}
	}
	return v.runningIdle()
}

// jobOver reports whether a job-scoped host has begun and ended its one job,
// with whatever conclusion. A report under the previous assignment is about
// another job.
func (v decider) jobOver() bool {
	return v.Record.JobsOf != "" && v.acknowledged() && v.Report.Jobs > 0 && !v.busy()
}

// lookBy is when a host that is, or becomes, running is looked at next: at t, or
// sooner for a job-scoped one, since the webhook about the end of its job may be
// lost.
func (v decider) lookBy(t time.Time) time.Time {
	if v.Record.JobsOf == "" {
		return t
	}
	return earliest(t, v.now.Add(v.p.JobPoll))
}

// runningIdle decides for a ready host without a job. If no caller received the
// answer that it is ready, its run may never use it.
func (v decider) runningIdle() Decision {
	r := v.Record
	if v.Request == nil || !v.Request.Unattended || !v.acknowledged() || v.Report.Jobs > 0 {
		return keep(v.lookBy(r.Threshold), "running: waiting for "+r.work())
	}
	readyAt := r.RuntimeEndsAt.Add(-r.maxRuntime(v.p))
	end := readyAt.Add(v.p.UnattendedTimeout)
	if reached(end, v.now) {
		return Decision{Action: ActionRelease, Reason: fmt.Sprintf(
			"no job for %s, and nobody waited for the request", v.p.UnattendedTimeout)}
	}
	return keep(v.lookBy(earliest(end, r.Threshold)), "running: waiting for a first job, since nobody waited for the request")
}

// releasing decides for a host without a run that is not yet clean. An unused
// host is made ready to serve in the same way as one that has served.
func (v decider) releasing() Decision {
	if v.busy() {
		return v.draining()
	}
	switch {
	case v.signal() == SignalRemoveRegOK && v.fresh():
		return v.clean()
	case v.signal() == SignalFailed && v.Record.Unused():
		return terminate(v.failure("the pre-runner script failed"))
	case v.silent():
		return terminate(fmt.Sprintf("silent for %s while it was %s", v.p.Silence, v.releasingWord()))
	case v.drained():
		return Decision{Action: ActionReleaseClock, Reason: fmt.Sprintf("no longer busy: %s to become clean", v.p.ReleaseTimeout)}
	case v.signal() == SignalRemoveRegFailed:
		return v.removalFailed()
	case v.expired() && v.Record.Unused():
		return terminate(fmt.Sprintf("not ready to serve by its threshold, %s after launch", v.Record.Threshold.Sub(v.Record.CreatedAt)))
	case v.expired():
		return terminate("not clean by its threshold after its release")
	case v.needsToken():
		return Decision{Action: ActionProvideToken, Reason: "the agent needs a remove token"}
	}
	if v.Record.Unused() {
		return keep(v.now.Add(v.p.ReleasePoll), "starting for the warm pool: waiting for the agent to prepare the host")
	}
	return keep(v.now.Add(v.p.ReleasePoll), "released: waiting for the agent to deregister and clean up")
}

func (v decider) releasingWord() string {
	if v.Record.Unused() {
		return "starting"
	}
	return "released"
}

// draining decides for a host that was released while a job runs. The job may run
// to the end of the host's runtime, which counts from when it became ready.
func (v decider) draining() Decision {
	r := v.Record
	if r.RuntimeEndsAt.IsZero() || r.Threshold.Before(r.RuntimeEndsAt) {
		return Decision{Action: ActionDrain, Reason: "released while busy: the job may finish"}
	}
	if v.expired() {
		return terminate(fmt.Sprintf("its maximum runtime of %s is over", r.maxRuntime(v.p)))
	}
	return keep(earliest(r.Threshold, v.now.Add(v.p.DrainPoll)), "released while busy: waiting for the job to finish")
}

// drained reports whether a host that was released while busy is no longer busy,
// as its agent says under this assignment. The release begins only now.
func (v decider) drained() bool {
	r := v.Record
	return v.acknowledged() && r.Threshold.Equal(r.RuntimeEndsAt) && !v.expired() &&
		!r.Threshold.Equal(v.now.Add(v.p.ReleaseTimeout))
}

// acknowledged reports whether the agent has seen this assignment.
func (v decider) acknowledged() bool {
	return v.Report != nil && v.Report.Assignment == v.Record.Assignment
}

// needsToken reports whether the agent cannot deregister with what the record has.
// A job-scoped host never needs to: its registration ends with its job or is
// deleted by name. While GitHub gives no token, it is asked only when the record
// is due, not at every look.
func (v decider) needsToken() bool {
	r := v.Record
	if r.RunnerName == "" || r.JobsOf != "" || v.now.Before(r.DueAt) {
		return false
	}
	return r.Registration == nil || (!r.Registration.ExpiresAt.IsZero() && reached(r.Registration.ExpiresAt, v.now))
}

// clean decides for a host that may serve again if its pool's rules allow it.
func (v decider) clean() Decision {
	r := v.Record
	switch {
	case v.p.Reuse == ReuseNone && !r.Unused():
		return terminate("its pool does not reuse hosts")
	case v.drifted() != "":
		return terminate(v.drifted())
	case r.Retiring:
		return terminate(r.retiring())
	case v.advised():
		return terminate(leave)
	case v.p.MaxUses > 0 && r.Uses >= v.p.MaxUses:
		return terminate(fmt.Sprintf("served %d runs, the most that its pool allows", r.Uses))
	case v.aged() != "":
		return terminate(v.aged())
	}
	if r.Unused() {
		return Decision{Action: ActionPool, Reason: "prepared and clean, for the first run that claims it"}
	}
	return Decision{Action: ActionPool, Reason: "deregistered and clean"}
}

// retiring says why the host leaves.
func (r Record) retiring() string { return cmp.Or(r.RetiringReason, "retiring") }

// leave is the reason to end a host without a run when EC2 advises to leave its machine.
const leave = "EC2 recommends to leave the machine, and no run is on it"

// advised reports whether EC2 recommended to leave the machine because it is likely
// to take it back. Most such machines work on for hours, so a run keeps its host,
// and no other run gets it.
func (v decider) advised() bool { return v.Report != nil && !v.Report.RebalanceAt.IsZero() }

// aged says that the host is as old as its pool allows, or is "".
func (v decider) aged() string {
	if !reached(v.Record.agesAt(v.p), v.now) {
		return ""
	}
	return fmt.Sprintf("launched %s ago or more, the most that its pool allows", v.p.MaxAge)
}

// drifted says that the host was launched from an older template, or is "".
func (v decider) drifted() string {
	if v.p.Drift == DriftIgnore {
		return ""
	}
	return v.Record.Drifted(v.Template)
}

func (v decider) removalFailed() Decision {
	r := v.Record
	if !v.Report.Cause.external() {
		return terminate(v.failure("deregistration or clean-up failed"))
	}
	end := r.ReleasedAt.Add(v.p.ExternalTimeout)
	switch {
	case reached(end, v.now):
		return terminate(v.failure(fmt.Sprintf("not deregistered within %s", v.p.ExternalTimeout)))
	case r.Threshold.Before(end):
		return Decision{Action: ActionExtend, Reason: v.failure("deregistration is held up")}
	case v.needsToken():
		return Decision{Action: ActionProvideToken, Reason: "the agent needs a fresh remove token"}
	}
	return keep(earliest(end, v.now.Add(v.p.DrainPoll)), v.failure("deregistration is held up"))
}

// pooled decides for a host that is clean and waits for a run.
func (v decider) pooled() Decision {
	r := v.Record
	if v.busy() && v.now.Before(r.PooledAt.Add(r.maxRuntime(v.p))) {
		return keep(v.now.Add(v.p.DrainPoll), "busy by its agent's word although pooled; a job is never ended by bookkeeping")
	}
	switch {
	case r.Retiring && v.drifted() != "":
		return terminate(v.drifted())
	case r.Retiring:
		return terminate(r.retiring())
	case v.advised():
		return terminate(leave)
	case v.silent():
		return terminate(fmt.Sprintf("silent for %s while idle", v.p.Silence))
	case v.aged() != "":
		return terminate(v.aged())
	case v.expired() && v.GitHubUnavailable && v.now.Before(r.PooledAt.Add(v.p.ExternalTimeout)):
		return Decision{Action: ActionExtend, Reason: "idle until its threshold, and nobody can be given a host while GitHub is away"}
	case v.expired():
		return terminate("idle until its threshold")
	}
	return keep(earliest(r.Threshold, r.agesAt(v.p)), "idle: waiting for a run")
}

// terminated decides for a host whose record has ended. The machine follows, then
// its registration, and then the record can be forgotten.
func (v decider) terminated() Decision {
	r, cloud := v.Record, v.p.CloudName()
	switch {
	case r.DueAt.IsZero():
		return keep(time.Time{}, "gone")
	case v.Cloud == nil:
		return Decision{Action: ActionEndMachine, CheckAt: v.now.Add(v.p.EndPoll), Reason: fmt.Sprintf("telling %s to end the machine", cloud)}
	case v.Cloud.State == MachineEnding:
		return keep(v.now.Add(v.p.EndPoll), fmt.Sprintf("waiting for %s to end the machine", cloud))
	case v.Cloud.State != MachineGone:
		return Decision{Action: ActionEndMachine, CheckAt: v.now.Add(v.p.EndPoll), Reason: cloud + " still runs the machine"}
	case r.RunnerName != "" && !v.runnerGone() && v.now.Before(r.UpdatedAt.Add(v.p.ForgetAfter)):
		return Decision{Action: ActionDeleteRunner, CheckAt: v.now.Add(v.p.DrainPoll), Reason: "removing what may be left of its registration"}
	case r.LostBy != nil:
		return keep(v.now.Add(v.p.EndPoll), fmt.Sprintf("run %s, which it left, is looked at first", r.LostBy.RunID))
	}
	return Decision{Action: ActionForget, Reason: cloud + " confirmed the end"}
}

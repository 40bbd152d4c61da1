package lifecycle

import (
	"cmp"
	"fmt"
	"time"
)

// created: launched, not yet ready.
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

// claimed: taken from the pool, not yet ready.
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

// becomesReady is the one way to running. A host whose request has no use for
// it any more does not become ready, unless a job already runs on it; one past
// its threshold neither.
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

// busyEarly: a job runs on a host that was not seen ready. It may run for as
// long as any other.
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

// running: serving its run. Only its runtime, the loss of its machine or an
// order ends a busy one.
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

// jobOver: the host serves one job, and has begun and ended it, however that
// went. A report of the assignment before speaks of another job.
func (v decider) jobOver() bool {
	return v.Record.JobsOf != "" && v.acknowledged() && v.Report.Jobs > 0 && !v.busy()
}

// lookBy is the next look at a host that is, or becomes, running: at t, but a
// job-scoped one sooner, since that its job is over may be told by nobody else.
func (v decider) lookBy(t time.Time) time.Time {
	if v.Record.JobsOf == "" {
		return t
	}
	return earliest(t, v.now.Add(v.p.JobPoll))
}

// runningIdle: nobody heard that the host is ready, so nobody may ever use it.
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

// releasing: without a run, not yet clean. A fresh host is made ready to serve
// in the same way as one that has served.
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

// draining: released while a job runs. The job may run to the end of its
// runtime, which counts from when the host became ready.
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

// drained: the host was released while busy, and its agent now says otherwise
// under this assignment. The release begins only now.
func (v decider) drained() bool {
	r := v.Record
	return v.acknowledged() && r.Threshold.Equal(r.RuntimeEndsAt) && !v.expired() &&
		!r.Threshold.Equal(v.now.Add(v.p.ReleaseTimeout))
}

// acknowledged: the agent has seen this assignment.
func (v decider) acknowledged() bool {
	return v.Report != nil && v.Report.Assignment == v.Record.Assignment
}

// needsToken: the agent cannot deregister with what the record has. A
// job-scoped host never needs to: its registration ends with its job or is
// deleted by its name. While GitHub gives no token it is asked for one when the
// record is due, not by everybody who looks.
func (v decider) needsToken() bool {
	r := v.Record
	if r.RunnerName == "" || r.JobsOf != "" || v.now.Before(r.DueAt) {
		return false
	}
	return r.Registration == nil || (!r.Registration.ExpiresAt.IsZero() && reached(r.Registration.ExpiresAt, v.now))
}

// clean: the host may serve again, if its pool's rules let it.
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

// leave is why a host ends that serves nobody.
const leave = "EC2 recommends to leave the machine, and no run is on it"

// advised: EC2 told the host that it is likely to take it. Most such machines work
// on for hours, so a run keeps it, and no other gets it.
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

// pooled: clean and waiting for a run.
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

// terminated: ended on paper. The machine follows, then its registration, then
// the record can be forgotten.
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

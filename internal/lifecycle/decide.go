package lifecycle

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// Facts are what is known about one host. An absent fact is unknown, never false: a host without a report is
// not silent, and one whose machine was not looked up is not gone.
type Facts struct {
	Record Record
	// Report is what the host's agent wrote, as far as it is believed: see Report.Believed.
	Report *Report
	// Request is the request that the record names.
	Request *Request
	// Cloud is the machine as EC2 sees it.
	Cloud *Machine
	// Runner is the registration that the record names, as GitHub sees it.
	Runner *Runner
	// StoppedHosts is how many hosts of its pool and resource class that runs have used are stopped; nil: unknown, and then none is stopped.
	StoppedHosts *int
	// StartShort is why the cloud has no capacity to start the machine, as it has just answered; empty: it did not say so.
	StartShort string
	// RootTask is the replacement of the root volume of a resetting host, and RootRefused why the cloud does not begin one, as it has just answered.
	RootTask    *RootTask
	RootRefused string
	// LabelsSet: GitHub has set the labels of the host's run. See Decision.SetLabels.
	LabelsSet bool
	// Excess: the request has no use for the host though it is open, since its callers have claimed more hosts than it has reserved.
	Excess bool
	// Watch says how far a silence of the host is its own fault.
	silence.Watch
	// Template is the version of what the hosts of the pool are launched from
	// now. Empty means unknown: then no host counts as drifted.
	Template string
	// GitHubUnavailable is set while GitHub does not answer this replica. No run
	// can be given an idle host then.
	GitHubUnavailable bool
	// FleetHold is the hold on the whole fleet, in force or not.
	FleetHold *fleethold.Hold
}

// Decision is what to do with a host now, when to look at it next, and why.
type Decision struct {
	Action Action
	// CheckAt is when the host must be looked at next; zero when the action itself sets a new time.
	CheckAt time.Time
	// Code says why in a word that programs may count by; Reason in a sentence for people.
	Code   ReasonCode
	Reason string
	// Busy and HostFault shape a release: see Apply.
	Busy      bool
	HostFault bool
	// Deregister: before the host is ended its registration is to be deleted, so that GitHub gives it no job
	// any more. If GitHub has given it one just now, it is not ended.
	Deregister bool
	// Deregistered: its registration was deleted just now, and nothing is left to
	// remove once its machine is gone.
	Deregistered bool
	// SetLabels: before the host is ready, its runner is to get the labels of its run. If GitHub no longer has the runner,
	// it is to be decided again, with Facts.Runner.
	SetLabels bool
	// Judges: GitHub is asked again whether the last run of the host may write the cache of docker. With its answer the host is to be decided again.
	Judges bool
	// StandsBy: the host is to register ahead of need as soon as it is pooled, with what Standby then holds.
	StandsBy bool
	Standby  *Standby
	// Caches is what the host has of caches when it is pooled.
	Caches cache.List
	// RunnerID is the runner that listens ahead of need, once GitHub was asked for it.
	RunnerID int64
	// StandbyFailed: the host is not to register ahead of need again.
	StandbyFailed bool
	// LostJob: EC2 takes a running job with the machine.
	LostJob bool
	// LosesRun is set when the host ends before its run was released. Once the host
	// has ended the run is looked at again: see Record.LostBy.
	LosesRun bool
	// Gone is set when EC2 says that the machine is gone, so that only the record has to end.
	Gone bool
	// EndedAt is when the machine of a host that is forgotten ended; zero: the cloud does not say.
	EndedAt time.Time
	// RootTask is the cloud's name for the replacement that was begun.
	RootTask string
	// KeepsTrust: the host keeps its trust key with its new root volume.
	KeepsTrust bool
	// Hibernate: the machine that is to be stopped keeps its memory.
	Hibernate bool
	// Hold is until when ActionHold keeps the host for the fleet's hold; zero takes the mark away.
	Hold time.Time
	// AgentKey is the key that the host binds with this decision; empty: none.
	AgentKey statement.Key
	// Statement is the verified statement of the reset that led to this decision.
	Statement string
}

// Decide is the one decision function of a host's life. It is pure and total:
// every combination of facts has an answer.
func Decide(f Facts, now time.Time, p Policy) Decision {
	v := decider{Facts: f, now: now, p: p}
	d := v.underFleetHold(v.withoutFleetMark().decide())
	d.LosesRun = d.Action == ActionTerminate && f.Record.RunID != "" && !v.unwanted().Given()
	return d
}

func (v *decider) decide() Decision {
	if v.Record.State == StateTerminated {
		return v.terminated()
	}
	if v.replacementOwed() {
		return act(ActionReplace, replaced)
	}
	if v.gone() {
		d := v.lostMachine(v.machineGone())
		d.Gone = true
		return d
	}
	d, lost := v.lost()
	if !lost && v.showsRestored() {
		return act(ActionRetire, recordRestored)
	}
	if !lost {
		d = v.byState()
	}
	switch ends := d.Action == ActionTerminate; {
	case ends && v.Record.Held(v.now):
		return v.held(d)
	case ends && !lost && v.busyRestored():
		return keep(v.now.Add(v.p.DrainPoll), busyRestored)
	case ends && !lost && v.unheard():
		return keep(v.now.Add(v.p.DrainPoll), notHeardYet)
	}
	return d
}

// showsRestored reports whether the report shows that the record is an older one, and the record does not say so yet. No run may claim it.
func (v *decider) showsRestored() bool {
	return v.Report != nil && restored.Older(v.Record.Assignment, v.Report.Newest()) && !(v.Record.Restored() && v.Record.Retiring)
}

// busyRestored reports whether a job may run that the record does not know. Then its deadlines say nothing.
func (v *decider) busyRestored() bool {
	return v.Record.Restored() && v.busy() && v.now.Before(restored.Until(v.Record.RestoredAt, v.Record.MaxRuntime, v.p.MaxRuntime))
}

// unheard reports whether the record is from long ago, as a restored one, by when it was written or by its deadline, and the agent had
// no time yet to report: controld has just started, or the store was away.
func (v *decider) unheard() bool {
	from := earliest(v.Record.writtenFor(v.Request, v.p), v.Record.Threshold)
	return !v.fresh() && !v.Listened(v.now, v.p.Silence) && reached(from.Add(restored.Old), v.now)
}

func (v *decider) byState() Decision {
	switch v.Record.State {
	case StateCreated:
		return v.created()
	case StateClaimed:
		return v.claimed()
	case StateRunning:
		return v.running()
	case StateIdle:
		if v.Record.Releasing() {
			return v.releasing()
		}
		if v.Record.Stopped() {
			return v.stopped()
		}
		if v.Record.Resetting() {
			return v.resetting()
		}
		return v.pooled()
	}
	return keep(v.now.Add(v.p.DrainPoll), Because(ReasonUnknownState, "state %q is not one of ours", v.Record.State))
}

// decider is the facts, the clock and the policy of one decision, with the questions that the states ask.
type decider struct {
	Facts
	now time.Time
	p   Policy
}

// signal is the agent's answer to the record's assignment, and to no other.
func (v *decider) signal() Signal {
	if !v.acknowledged() {
		return SignalNone
	}
	return v.Report.Signal
}

// busy reports whether the agent says that a job runs, under whichever assignment
// it last reported: a job that began under the previous one is still a job.
func (v *decider) busy() bool { return v.Report != nil && v.Report.Busy }

// fresh reports whether the last heartbeat is younger than Policy.Silence.
func (v *decider) fresh() bool {
	return v.Report != nil && v.now.Sub(v.Report.HeartbeatAt) < v.p.Silence
}

// off reports whether the machine of the host is stopped or boots again, so that its agent cannot speak.
func (v *decider) off() bool {
	return v.Record.Stopped() || v.booting() || v.Record.Resetting() || v.restarting()
}

// silent reports whether a host that once spoke has fallen silent through its own fault.
func (v *decider) silent() bool {
	return v.Report != nil && !v.off() && v.Silent(v.Report.HeartbeatAt, v.p.Silence)
}

// excused reports whether a deadline that the host missed for want of a report is to be passed over. The host gets
// as long as a job may run: after that, none can be on it, and a host that is really dead is paid for no longer.
func (v *decider) excused() bool {
	return v.expired() && !v.off() && (v.reportLost() || v.Report != nil && v.Excused(v.Report.HeartbeatAt, v.now, v.p.Silence)) &&
		v.now.Before(v.Record.Threshold.Add(v.Record.maxRuntime(v.p)))
}

// reportLost reports whether the store has lost the report of the host, which cannot write another: only a host that has
// reported gets a second assignment. How many others are quiet is not known then. One that drains has had the whole runtime of its job.
func (v *decider) reportLost() bool {
	return v.Report == nil && v.Record.Assignment > 1 && !v.Record.Threshold.Equal(v.Record.RuntimeEndsAt)
}

// lost decides the two cases that end a host in any state because its machine is
// as good as gone: EC2 confirms that a silent host is impaired or ending, busy or
// not; or EC2 announced an interruption and no job runs.
func (v *decider) lost() (Decision, bool) {
	switch {
	case v.silent() && v.Cloud != nil && (v.Cloud.Impaired || v.Cloud.halted()):
		return v.lostMachine(v.machineImpaired()), true
	case v.interrupted() && v.workless():
		d := terminate(interrupted)
		d.Deregister = v.Record.RunnerName != ""
		return d, true
	}
	return Decision{}, false
}

// workless reports whether no job runs, as far as that is known. A running host
// without a report may have one.
func (v *decider) workless() bool {
	return !v.busy() && (v.Report != nil || v.Record.State != StateRunning)
}

// gone reports whether EC2 shows that the machine has ended. One that it does not show is unknown: whole answers are empty if controld asks another
// region or account than the hosts are in, or if EC2 shows too little for a while. The silence of its agent and its deadlines end such a host.
func (v *decider) gone() bool {
	return v.Cloud != nil && v.Cloud.State == MachineGone && v.Cloud.Shown()
}

// lostMachine ends a host whose machine is as good as gone. If EC2 had announced
// the end, the job that the host was last known to run is lost with it.
func (v *decider) lostMachine(why Reason) Decision {
	d := terminate(why)
	d.LostJob = v.interrupted() && v.busy() && v.Record.RunID != "" && v.Record.JobsOf == ""
	return d
}

// replacementOwed reports whether the run loses this host and asked for another
// one in that case. A request that is still open finds another host by itself.
func (v *decider) replacementOwed() bool {
	q := v.Request
	return v.Record.State == StateRunning && !v.expired() && v.interrupted() && v.Record.ReplacedBy == "" && q != nil && q.Spec.ReplaceInterrupted &&
		q.Settled() && q.Wants(v.Record) && q.generation() < maxGenerations
}

func (v *decider) runnerGone() bool { return v.Runner != nil && v.Runner.Gone }

// interrupted reports whether EC2 announced, to the host or to controld, that it takes the machine back.
func (v *decider) interrupted() bool {
	return !v.Record.InterruptionAt.IsZero() || v.Report != nil && !v.Report.InterruptionAt.IsZero()
}

func (v *decider) expired() bool { return reached(v.Record.Threshold, v.now) }

// held keeps a host that would be ended: an operator is looking at it, so it goes
// on with what it does (docs/design.md#the-lifecycle).
func (v *decider) held(d Decision) Decision {
	return keep(v.Record.Hold, v.heldBack(d))
}

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// Action is what to do with a host: a transition of its record, a smaller write, or a call to the world outside.
type Action string

// The actions. The first group changes the state, the second only attributes of the record, the third nothing in it.
const (
	ActionLaunch    Action = "launch"    // – to created
	ActionReady     Action = "ready"     // created or claimed to running
	ActionRelease   Action = "release"   // running to idle (releasing)
	ActionReturn    Action = "return"    // claimed to idle (releasing)
	ActionPool      Action = "pool"      // idle (releasing) to idle (pooled)
	ActionClaim     Action = "claim"     // idle (pooled) to claimed
	ActionTerminate Action = "terminate" // any to terminated

	ActionStandBy      Action = "stand_by"      // a pooled host has registered ahead of need, and listens
	ActionLeaveStandby Action = "leave_standby" // idle (pooled) to idle (releasing)
	ActionReregister   Action = "reregister"    // a host that was claimed while it listened has to register

	ActionRest Action = "rest" // a pooled host reads its record seldom from now on
	ActionWake Action = "wake" // and often again

	ActionStop        Action = "stop"         // idle (pooled), or claimed and not started, to idle (stopped)
	ActionConfirmStop Action = "confirm_stop" // the cloud shows the machine of a stopped host as stopped
	ActionStart       Action = "start"        // idle (stopped) to claimed

	ActionReset        Action = "reset"         // idle (releasing) to idle (resetting)
	ActionBeginReset   Action = "begin_reset"   // the cloud has the order to replace the root volume of a resetting host
	ActionConfirmReset Action = "confirm_reset" // idle (resetting) to idle (releasing): the host has its new root volume

	ActionDrain        Action = "drain"         // a releasing host is busy after all
	ActionReleaseClock Action = "release_clock" // a draining host is no longer busy
	ActionExtend       Action = "extend"        // a release or a claim is held up by GitHub or AWS
	ActionProvideToken Action = "provide_token" // the agent needs a (fresh) remove token
	ActionForget       Action = "forget"        // machine and registration are gone: nothing is due
	ActionHold         Action = "hold"          // an operator set or took away a hold, of the host or the fleet
	ActionReplace      Action = "replace"       // a request is made for a host in the place of an interrupted one
	ActionNotice       Action = "notice"        // EC2 announced that it will take the machine back
	ActionRetire       Action = "retire"        // it is not claimed any more, and leaves when it is next idle
	ActionSettle       Action = "settle"        // a request has its outcome
	ActionMarkOrphan   Action = "mark_orphan"   // it should be registered and GitHub does not have it
	ActionUnmarkOrphan Action = "unmark_orphan" // it was found at the last chance
	ActionMarkIdle     Action = "mark_idle"     // scale-down has seen it idle for the first time
	ActionUnmarkIdle   Action = "unmark_idle"   // it is not idle after all

	ActionKeep         Action = "keep"
	ActionEndMachine   Action = "end_machine"   // tell the cloud to end the machine
	ActionStopMachine  Action = "stop_machine"  // tell the cloud to stop the machine
	ActionStartMachine Action = "start_machine" // tell the cloud to start the machine
	ActionReplaceRoot  Action = "replace_root"  // tell the cloud to replace the root volume of the machine
	ActionDeleteRunner Action = "delete_runner" // delete the registration on GitHub
	ActionScale        Action = "scale"         // a runner service has more runners, or fewer
	ActionFailJob      Action = "fail_job"      // a job of a runner service failed without a report of its worker
	ActionRequeueJob   Action = "requeue_job"   // a job of a runner service waits once more
	ActionWarn         Action = "warn"          // much of a budget is used
	ActionRefuseJob    Action = "refuse_job"    // a queued job gets no host
	ActionStartJob     Action = "start_job"     // a runner has taken a job
	ActionEndJob       Action = "end_job"       // a job is over
	ActionPause        Action = "pause"         // an operator paused a pool
	ActionResume       Action = "resume"        // an operator resumed a pool
	ActionDropCache    Action = "drop_cache"    // an operator dropped a cache
	// ActionWorkerOffline: a worker of a runner service sends no heartbeats any more.
	ActionWorkerOffline Action = "worker_offline"
)

// Actions lists every action.
var Actions = []Action{
	ActionLaunch, ActionReady, ActionRelease, ActionReturn, ActionPool, ActionClaim, ActionTerminate,
	ActionStandBy, ActionLeaveStandby, ActionReregister, ActionRest, ActionWake, ActionStop, ActionConfirmStop, ActionStart,
	ActionReset, ActionBeginReset, ActionConfirmReset,
	ActionDrain, ActionReleaseClock, ActionExtend, ActionProvideToken, ActionForget, ActionHold, ActionRetire, ActionNotice, ActionReplace, ActionSettle,
	ActionMarkOrphan, ActionUnmarkOrphan, ActionMarkIdle, ActionUnmarkIdle,
	ActionKeep, ActionEndMachine, ActionStopMachine, ActionStartMachine, ActionReplaceRoot, ActionDeleteRunner, ActionScale, ActionFailJob, ActionRequeueJob, ActionRefuseJob, ActionWarn, ActionStartJob, ActionEndJob, ActionWorkerOffline, ActionPause, ActionResume, ActionDropCache,
}

// living are the conditions of a host that has not ended.
var living = []string{string(StateCreated), string(StateRunning), "idle (releasing)", "idle (pooled)", "idle (stopped)", "idle (resetting)", string(StateClaimed)}

// transitions is the table of docs/design.md#the-lifecycle, by Record.Condition.
var transitions = map[Action][]string{
	ActionReady:   {string(StateCreated), string(StateClaimed)},
	ActionRelease: {string(StateRunning)},
	ActionReturn:  {string(StateClaimed)},
	ActionPool:    {"idle (releasing)"},
	ActionClaim:   {"idle (pooled)"},

	ActionStandBy:      {"idle (pooled)"},
	ActionLeaveStandby: {"idle (pooled)"},
	ActionRest:         {"idle (pooled)"},
	ActionWake:         {"idle (pooled)"},
	ActionStop:         {"idle (pooled)", string(StateClaimed)},
	ActionConfirmStop:  {"idle (stopped)"},
	ActionStart:        {"idle (stopped)"},
	ActionReset:        {"idle (releasing)"},
	ActionBeginReset:   {"idle (resetting)"},
	ActionConfirmReset: {"idle (resetting)"},
	ActionReregister:   {string(StateClaimed)},
	ActionTerminate:    living,
	ActionDrain:        {"idle (releasing)"},
	ActionReleaseClock: {"idle (releasing)"},
	ActionExtend:       {"idle (releasing)", "idle (pooled)"},
	ActionProvideToken: {"idle (releasing)"},
	ActionReplace:      {string(StateRunning)},
	ActionRetire:       living,
	ActionForget:       {string(StateTerminated)},
	ActionHold:         append([]string{string(StateTerminated)}, living...),
}

// Allowed reports whether the table has a transition by action from the record's condition.
func Allowed(r Record, action Action) bool {
	return slices.Contains(transitions[action], r.Condition()) && r.allows(action)
}

// begin checks the table and stamps what every transition stamps. The reason stays that of the last change of
// state: why a host ended is worth more than that its machine is gone by now.
func (r Record) begin(action Action, now time.Time, why Reason) (Record, error) {
	if !Allowed(r, action) {
		return r, &TransitionError{HostKey: r.HostKey, From: r.Condition(), Action: action}
	}
	r.UpdatedAt = now
	if changesState(action) {
		r.Reason, r.ReasonCode = why.Text, why.Code
		r.unmark()
	}
	return r, nil
}

func changesState(action Action) bool {
	switch action {
	case ActionReady, ActionRelease, ActionReturn, ActionPool, ActionClaim, ActionTerminate, ActionLeaveStandby, ActionReregister,
		ActionStop, ActionStart, ActionReset, ActionConfirmReset:
		return true
	}
	return false
}

// Launched is the record of a machine that was launched for a request. It has assignment 1 and waits for its agent.
func Launched(m Machine, q Request, reg *Registration, now time.Time, p Policy) Record {
	r := Record{
		HostKey: m.HostKey, InstanceID: m.InstanceID, Pool: q.Spec.Pool, State: StateCreated,
		RunID: q.RunID, RunAttempt: q.Spec.RunAttempt, Repository: q.Repository, RequestID: q.RequestID,
		JobsOf: q.Spec.JobsOf, Forks: q.Spec.Forks,
		Assignment: 1, MaxRuntime: q.Spec.MaxRuntime, Threshold: now.Add(p.CreationTimeout),
		Hardware: m.Hardware, Labels: q.Spec.Labels,
		TrustKey: p.Reuse.TrustKey(q.Repository), Uses: 1, TemplateVersion: m.TemplateVersion,
		Registration: reg, RunnerName: RunnerName(1, m.InstanceID),
		LaunchedAt: m.LaunchedAt, CreatedAt: now, UpdatedAt: now, Arrival: arrival.Of(q.CreatedAt, now, q.Wait, q.Missed),
		Workflow: q.Workflow,
	}
	r.Meter = r.firstCycle()
	r.Reason, r.ReasonCode = "launched for "+r.purpose(), CodeOf(ActionLaunch)
	r.DueAt = r.Threshold
	return r
}

// LaunchedWarm is the record of a machine that was launched ahead of need: it has
// no run, and is pooled, or stopped after that, once its agent says that it is prepared and clean.
func LaunchedWarm(m Machine, q Request, now time.Time, p Policy) Record {
	r := Record{
		HostKey: m.HostKey, InstanceID: m.InstanceID, Pool: q.Spec.Pool, State: StateIdle, RequestID: q.RequestID,
		Assignment: 1, Threshold: now.Add(p.CreationTimeout), ReleasedAt: now,
		Hardware: m.Hardware, TemplateVersion: m.TemplateVersion,
		LaunchedAt: m.LaunchedAt, CreatedAt: now, UpdatedAt: now,
		ToStop: q.Kind == RequestStopped,
		Reason: "launched ahead of need, for the first run that claims it", ReasonCode: CodeOf(ActionLaunch),
	}
	if r.ToStop {
		r.Reason = "launched ahead of need, to be stopped until the first run needs it"
	}
	r.DueAt = earliest(r.Threshold, now.Add(p.ReleasePoll))
	r.Meter = r.firstCycle()
	return r
}

// firstCycle begins with the launch of the machine, which is what it is paid from.
func (r Record) firstCycle() meter.Meter {
	if r.LaunchedAt.IsZero() {
		return meter.Begin(r.CreatedAt)
	}
	return meter.Begin(r.LaunchedAt)
}

// purpose names what the host is there for, in sentences.
func (r Record) purpose() string {
	if r.JobsOf != "" {
		return fmt.Sprintf("one job of %s (%s)", r.JobsOf, r.RequestID)
	}
	return fmt.Sprintf("run %s", r.RunID)
}

// work names what a ready host waits for.
func (r Record) work() string {
	if r.JobsOf != "" {
		return "its one job"
	}
	return "jobs of its run"
}

// Apply carries out a decision on the record: it returns the record to be written, under the condition that
// the stored one still has r's version. Actions of the world outside and ActionKeep do not change a record.
func Apply(r Record, d Decision, now time.Time, p Policy) (Record, error) {
	switch d.Action {
	case ActionKeep, ActionEndMachine, ActionStopMachine, ActionStartMachine, ActionReplaceRoot, ActionDeleteRunner:
		return r, nil
	case ActionClaim, ActionStart: // take a Claim; see Claimed and Started
		return r, &TransitionError{HostKey: r.HostKey, From: r.Condition(), Action: d.Action}
	}
	n, err := r.begin(d.Action, now, Reason{d.Code, d.Reason})
	if err != nil {
		return r, err
	}
	if d.AgentKey != "" {
		n.AgentKey = d.AgentKey
	}
	switch d.Action {
	case ActionReady:
		n.ready(now, d, p)
	case ActionRelease, ActionReturn:
		n.release(now, d, p)
	case ActionPool:
		n.pool(now, d, p)
	case ActionStandBy:
		n.standBy(d)
	case ActionLeaveStandby:
		n.leaveStandby(d, now, p)
	case ActionReregister:
		n.reregister(now, p)
	case ActionRest:
		n.RestingAt, n.DueAt = now, d.CheckAt
	case ActionWake:
		n.RestingAt, n.DueAt = time.Time{}, d.CheckAt
	case ActionStop:
		if r.Starting() {
			n.stopAgain(now, d, p)
		} else {
			n.stop(now, p)
		}
	case ActionConfirmStop:
		n.confirmStop(now, p)
	case ActionReset:
		n.reset(now, p)
	case ActionBeginReset:
		v := *r.RootVolume
		v.Task = d.RootTask
		n.RootVolume, n.DueAt = &v, d.CheckAt
	case ActionConfirmReset:
		n.confirmReset(now, d, p)
	case ActionReplace:
		n.ReplacedBy, n.DueAt = r.ReplacementID(), now
	case ActionTerminate:
		if d.LostJob {
			n.LostJob = LostJobOf(r.Repository, r.RunID, r.RunAttempt)
		}
		if d.LosesRun && r.RunID != "" {
			n.LostBy = &LostRun{RunID: r.RunID, RequestID: r.RequestID, Labels: r.Labels}
		}
		if d.Deregistered {
			n.RunnerName, n.GitHubRunnerID = "", 0
		}
		n.terminate(now)
	case ActionDrain:
		n.drain(now, p)
	case ActionReleaseClock:
		n.startRelease(now, p)
	case ActionExtend:
		n.extend(now, p)
	case ActionProvideToken:
		n.DueAt = earliest(n.Threshold, now.Add(p.ReleasePoll))
	case ActionRetire: // its record is an older state; when that was first seen is kept
		n.Retiring, n.RetiringReason, n.DueAt = true, d.Reason, earliest(r.Threshold, now)
		n.RestoredAt = earliest(r.RestoredAt, now)
	case ActionHold:
		n.mark(d, now)
	case ActionForget:
		n.DueAt = time.Time{}
		n.unmark()
		n.RunnerName, n.GitHubRunnerID = "", 0
		n.ExpiresAt = now.Add(p.ForgetAfter)
	}
	return n, nil
}

func (r *Record) ready(now time.Time, d Decision, p Policy) {
	r.State = StateRunning
	r.Meter.Ready(r.gotAt(), now)
	r.Threshold = now.Add(r.maxRuntime(p))
	r.RuntimeEndsAt = r.Threshold
	r.Registration = nil
	r.ClaimFailures, r.Stop = 0, nil
	r.readyStandby(d)
	r.forgetMarks()
	r.DueAt = earliest(r.Threshold, d.CheckAt)
}

// release frees the host of its run. A host known to be busy drains: its
// threshold stays the end of its runtime until it is first seen not busy.
func (r *Record) release(now time.Time, d Decision, p Policy) {
	r.State, r.Stop = StateIdle, nil
	r.unassign(now)
	if d.HostFault {
		r.ClaimFailures++
	}
	r.startRelease(now, p)
	if d.Busy {
		r.drain(now, p)
	}
}

// startRelease starts the clock of a release: at once, or when a host that was busy is first seen not busy.
func (r *Record) startRelease(now time.Time, p Policy) {
	r.ReleasedAt = now
	r.Threshold = now.Add(p.ReleaseTimeout)
	r.DueAt = earliest(r.Threshold, now.Add(p.ReleasePoll))
}

func (r *Record) drain(now time.Time, p Policy) {
	if r.RuntimeEndsAt.IsZero() {
		r.RuntimeEndsAt = now.Add(r.maxRuntime(p))
	}
	r.Threshold = r.RuntimeEndsAt
	r.DueAt = earliest(r.Threshold, now.Add(p.DrainPoll))
}

func (r *Record) pool(now time.Time, d Decision, p Policy) {
	r.Meter.Pool(r.ReleasedAt, now)
	r.PooledAt, r.Caches, r.DropCaches = now, d.Caches, r.stillToDrop(d.Caches)
	r.ThrowCaches = nil
	r.leaveRequest()
	waits := p.IdleTime
	switch {
	case r.StopsNext():
		waits = p.ClaimMargin // so that no run claims it
	case r.Unused() && !r.Renewed():
		waits = p.WarmTime
	}
	r.Threshold = earliest(now.Add(waits), r.agesAt(p))
	r.DueAt = p.RestLook(*r, now)
	if r.StopsNext() {
		r.DueAt = now
	}
	if d.StandsBy && d.Standby != nil {
		r.Standby, r.RunnerName = d.Standby, RunnerName(r.Assignment, r.InstanceID)
		r.DueAt = earliest(r.Threshold, now.Add(p.ReleasePoll))
	}
}

// leaveRequest ends what a clean host has of the request that it was released for.
func (r *Record) leaveRequest() {
	r.RequestID, r.KeepCaches, r.Unjudged, r.Mirror = "", nil, false, nil
	r.ReleasedAt, r.RuntimeEndsAt = time.Time{}, time.Time{}
	r.Registration, r.RunnerName, r.GitHubRunnerID, r.JobsOf, r.Forks = nil, "", 0, "", false
}

func (r *Record) terminate(now time.Time) {
	hadRun, releasedAt := r.RunID != "", r.ReleasedAt
	if r.Draining() { // a job ran on, and its end was not seen
		releasedAt = now
	}
	r.State, r.Stop, r.RootVolume = StateTerminated, nil, nil
	r.unassign(now)
	r.Meter.End(releasedAt, now, hadRun)
	r.RequestID = ""
	r.PooledAt, r.RestingAt, r.ReleasedAt, r.RuntimeEndsAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	r.Threshold = time.Time{}
	r.Hold, r.FleetHeld = time.Time{}, false
	r.DueAt = now
}

// extend gives more time to a host that GitHub or AWS hold up: time to become clean
// to one that is being released, and time to be claimed to an idle one.
func (r *Record) extend(now time.Time, p Policy) {
	if r.Pooled() {
		r.Threshold = earliest(earliest(now.Add(p.IdleTime), r.PooledAt.Add(p.ExternalTimeout)), r.agesAt(p))
		r.DueAt = r.Threshold
		return
	}
	r.Threshold = r.ReleasedAt.Add(p.ExternalTimeout)
	r.DueAt = earliest(r.Threshold, now.Add(p.DrainPoll))
}

// unassign clears the run, and the labels with it. The repository and JobsOf stay, since they say what the host is still
// registered with, and how. The request stays until the host is clean, for callers that wait for its release.
func (r *Record) unassign(now time.Time) {
	if r.RunID != "" {
		r.Meter.Release(r.gotAt(), now, r.user())
		r.LastRun = r.lastRun()
	}
	r.RunID, r.RunAttempt, r.Labels, r.Registration, r.Standby, r.Arrival = "", 0, nil, nil, nil, nil
	r.KeepCaches, r.Unjudged, r.Mirror = nil, false, nil
	r.Assignment++
	r.forgetMarks()
}

// gotAt is when the run of the host got it. Records of an older controld do not have it.
func (r *Record) gotAt() time.Time {
	if r.Arrival == nil {
		return r.UpdatedAt
	}
	return r.Arrival.At
}

// user is the run of the host, to which its time is charged. The run of a job-scoped host is no run of GitHub's.
func (r *Record) user() meter.User {
	u := meter.User{Repository: r.Repository, Workflow: r.Workflow, RunID: r.RunID, Attempt: r.RunAttempt}
	if r.JobsOf != "" {
		u.RunID, u.Attempt = "", 0
	}
	return u
}

// lastRun is the run that had the host until its release, for LastRun; empty: it is not known, as where no webhook has named the run of a job.
func (r *Record) lastRun() string {
	user := r.user()
	if c, ok := r.Meter.Cycle(); ok {
		user = c.User
	}
	run, ok := strings.CutPrefix(RunKey(Canonical(user.Repository), user.RunID), r.TrustKey+"/")
	if !ok || user.RunID == "" {
		return ""
	}
	return run
}

// ChargeTo names the run that used a host that is being released, where the release did not know it.
func (r *Record) ChargeTo(user meter.User) {
	r.Meter.ChargeTo(user)
	r.LastRun = r.lastRun()
}

func (r *Record) maxRuntime(p Policy) time.Duration {
	if r.MaxRuntime > 0 {
		return r.MaxRuntime
	}
	return p.MaxRuntime
}

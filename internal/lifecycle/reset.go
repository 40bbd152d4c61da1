package lifecycle

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// RootVolume is what a record has of a host whose root volume is replaced by what it was launched with: the machine stays, and its disk is new.
// It is set from the decision to replace the volume until a run gets the host, or the host ends.
type RootVolume struct {
	// At is when controld decided to replace the volume.
	At time.Time `json:"at"`
	// Task is the cloud's name for the replacement; empty: it is not known whether the cloud has the order.
	Task string `json:"task,omitempty"`
	// ReplacedAt is when the cloud first said that the new volume is there; zero: the host may still have the old one.
	ReplacedAt time.Time `json:"replacedAt,omitzero"`
}

// RootTask is a replacement of a root volume as the cloud sees it.
type RootTask struct {
	ID         string
	InstanceID string
	State      RootTaskState
	// Said is what the cloud calls the state.
	Said string
}

// RootTaskState is how far a replacement is.
type RootTaskState string

// The states of a replacement.
const (
	RootReplacing RootTaskState = "replacing"
	RootReplaced  RootTaskState = "replaced" // the machine runs with the new volume
	RootFailed    RootTaskState = "failed"   // it has the old volume, or none
)

// replaceTimeout is how long the cloud may take to replace a root volume. EC2 takes minutes, and gives no bound.
const replaceTimeout = 15 * time.Minute

// Resetting reports whether the host waits for its new root volume.
func (r Record) Resetting() bool {
	return r.State == StateIdle && r.RootVolume != nil && r.RootVolume.ReplacedAt.IsZero()
}

// Reboots reports whether the host's machine is stopped or boots again, so that the silence of its agent says nothing.
func (r Record) Reboots() bool { return r.Stop != nil || r.Resetting() || r.Releasing() && r.Renewed() }

// Renewed reports whether no run has had the host since its root volume was replaced.
func (r Record) Renewed() bool { return r.RootVolume != nil && !r.RootVolume.ReplacedAt.IsZero() }

// Fresh reports whether no run has used what the host has on its disk.
func (r Record) Fresh() bool { return r.Uses == 0 || r.Renewed() }

// ReplacementToken names the replacement that a resetting host waits for: EC2 begins one for each token, and answers with an old one that has the same.
// The time of the decision is in it: a record that was restored comes to the same assignment again, with a volume that a run has used since. It has at
// most 64 characters, as EC2 wants.
func (r Record) ReplacementToken() string {
	return fmt.Sprintf("%s-%d-%x", r.InstanceID, r.Assignment, r.RootVolume.At.UnixMilli())
}

// reset has the root volume of a clean host replaced. Its run and its request are done with it.
func (r *Record) reset(now time.Time, p Policy) {
	r.Meter.Pool(r.ReleasedAt, now)
	r.leaveRequest()
	r.RootVolume = &RootVolume{At: now}
	r.Threshold = earliest(now.Add(replaceTimeout), r.agesAt(p))
	r.DueAt = now
}

// confirmReset notes that the host has its new root volume. It is a host that no run has used from then on, with a new agent, whose reports
// alone count: it has another assignment. Where a job may have had the credentials of its machine, which stay, it keeps its trust key.
func (r *Record) confirmReset(now time.Time, d Decision, p Policy) {
	v := *r.RootVolume
	v.ReplacedAt = now
	r.RootVolume = &v
	r.Assignment++
	r.AgentKey, r.Caches, r.DropCaches, r.ThrowCaches = "", "", "", nil
	r.ClaimFailures, r.StandbyFailed = 0, false
	if !d.KeepsTrust {
		r.TrustKey, r.LastRun, r.Repository, r.Workflow = "", "", "", ""
	}
	r.ReleasedAt = now
	r.Threshold = now.Add(p.CreationTimeout)
	r.DueAt = earliest(r.Threshold, now.Add(p.ReleasePoll))
}

// resets reports whether a clean host is reset further before its next run.
func (v *decider) resets() bool { return v.p.Reset == statement.LevelRootVolume && !v.Record.Fresh() }

// mayReset has the root volume of a clean host replaced, unless an operator looks at it.
func (v *decider) mayReset() Decision {
	if v.Record.Held(v.now) {
		return keep(v.Record.Hold, resetHeld)
	}
	return act(ActionReset, rootReset)
}

// resetting decides for a host that waits for its new root volume. That its agent is silent says nothing. controld has the cloud replace the
// volume only while the agent says that the host is clean: a restored record may have a host here that serves a run.
func (v *decider) resetting() Decision {
	r, s, task := v.Record, v.Record.RootVolume, v.RootTask
	idle := v.signal() == SignalRemoveRegOK && v.fresh() && !v.busy()
	switch {
	case v.busy() && v.fresh() && v.now.Before(s.At.Add(r.maxRuntime(v.p))):
		return keep(v.now.Add(v.p.DrainPoll), busyPooled)
	case r.Retiring:
		return terminate(r.retiring())
	case v.outlivedReuse():
		return terminate(noReuse)
	case v.aged().Given():
		return terminate(v.aged())
	case v.drifted().Given():
		return terminate(v.drifted())
	case v.RootRefused != "":
		return terminate(v.rootRefused())
	case task != nil && task.State == RootFailed:
		return terminate(v.rootFailed())
	case task != nil && s.Task == "":
		d := act(ActionBeginReset, v.replacingRoot())
		if d.RootTask, d.CheckAt = task.ID, v.now.Add(v.p.EndPoll); task.State == RootReplaced {
			d.CheckAt = v.now
		}
		return d
	case task != nil && task.State == RootReplaced:
		d := act(ActionConfirmReset, v.rootReplaced())
		d.KeepsTrust = v.keepsTrust()
		return d
	case v.expired():
		return terminate(v.rootTimeout())
	case s.Task == "" && idle && !r.Held(v.now):
		d := act(ActionReplaceRoot, v.replacingRoot())
		d.CheckAt = v.now.Add(v.p.EndPoll)
		return d
	}
	return keep(earliest(r.Threshold, v.now.Add(v.p.EndPoll)), v.replacingRoot())
}

// keepsTrust reports whether a job may have had the credentials of the machine: by what the pool allows now, or may have allowed when the host was launched.
// An older launch template says so no more, and such a host is still there if the pool ignores drift.
func (v *decider) keepsTrust() bool { return v.p.KeepsTrust || v.Record.Outdated(v.Template) }

// restarting reports whether the host has its new root volume, and its new agent has not spoken yet.
func (v *decider) restarting() bool {
	return v.Record.Releasing() && v.Record.Renewed() && (v.Report == nil || !v.Report.HeartbeatAt.After(v.Record.RootVolume.ReplacedAt))
}

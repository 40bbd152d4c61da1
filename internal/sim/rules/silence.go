package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// countedBy is how old the count of quiet hosts may be that a decision goes by: two intervals of the liveness sweep,
// and the time for which the replica that decides was suspended.
const countedBy = 3 * time.Minute

// checkManySilent checks that no host is ended for a report that it did not write while many wrote none, whatever
// the operation. After the longest runtime of a job it is ended anyway.
func (w *Watcher) checkManySilent(l *history, before, after lifecycle.Record) {
	switch after.ReasonCode {
	case lifecycle.ReasonSilent, lifecycle.ReasonRegistrationTimeout, lifecycle.ReasonCleanUpTimeout, lifecycle.ReasonPreparationTimeout:
	default:
		return
	}
	if m := w.Machines[before.InstanceID]; before.Starting() || before.Reboots() || m != nil && (m.State == lifecycle.MachineStopped || m.State == lifecycle.MachineGone) {
		return // its agent has not spoken since its machine was to start; or no job can be on it, whatever an older state of its record says
	}
	if l.reportLost && (before.Assignment == 1 || before.Threshold.Equal(before.RuntimeEndsAt)) {
		return // by its record it has never reported, or its job has had its whole runtime
	}
	at := w.Now.Add(-countedBy)
	if read := w.Current.LastLook(world.SeesAllReports); !read.At.IsZero() {
		at = read.At
	}
	quietAt := at.Add(-silence.Quiet(w.Pools[before.Pool].Policy.Silence) - world.MaxLag)
	if l.reportedAt.IsZero() || l.reportedAt.After(quietAt) || !w.Now.Add(clockSlack).Before(before.Threshold.Add(before.MaxRuntime)) {
		return
	}
	quiet, all := 0, 0
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || r.State == lifecycle.StateTerminated && r.HostKey != before.HostKey {
			continue
		}
		if r.Reboots() || m.State == lifecycle.MachineStopped { // its machine is not to be heard
			continue
		}
		all++
		if last := w.of(m.HostKey).reportedAt; !last.IsZero() && !last.After(quietAt) && !w.malformed(m.HostKey) {
			quiet++
		}
	}
	if silence.Mass(quiet, all) {
		w.Broken(RuleManySilent, "%s is ended while %d of %d hosts are silent: %s", before.HostKey, quiet, all, after.Reason)
	}
}

// malformed reports whether the last report of a host, which a job has forged, cannot be believed. It says not even when it was
// written, so the host is not known to be silent.
func (w *Watcher) malformed(hostKey string) bool {
	p, ok := engine.Must1(w.Truth.Reports(engine.Background, []string{hostKey}))[hostKey]
	return ok && p.Check(w.Now) != nil
}

// notHeardYet reports whether controld, when it began to release the run of a host that boots or was claimed, could not know whether its record is a
// restored one: the record or its deadline was old, the agent had not reported lately, and it could not have done so, since the
// store had not answered the replica for long enough. Then the host stays until its agent could report. A report that came since, or so late that a read
// may have missed it, does not count.
func (w *Watcher) notHeardYet(r lifecycle.Record, p lifecycle.Report, began time.Time) bool {
	written, limit := r.UpdatedAt, w.Pools[r.Pool].Policy.Silence
	q, err := w.Truth.Request(engine.Background, r.Repository, r.RunID, r.RequestID)
	if r.State == lifecycle.StateCreated {
		written = r.CreatedAt // a mark since knew nothing newer
		if err == nil && q.ReleasedAt.After(written) {
			written = q.ReleasedAt
		}
	}
	if r.Threshold.Before(written) {
		written = r.Threshold
	}
	old := !w.Now.Add(clockSlack).Before(written.Add(restored.Old))
	heard, seen := p.HeartbeatAt, began.Add(-world.MaxLag)
	if l := w.of(r.HostKey); !l.reportedBefore.Before(seen) {
		heard = time.Time{} // what was before it is not known
	} else if !l.reportedAt.Before(seen) {
		heard = l.reportedBefore
	}
	unheard := heard.Before(w.Now.Add(clockSlack - limit))
	ready := r.State == lifecycle.StateRunning || r.State == lifecycle.StateIdle
	return !ready && old && unheard && began.Sub(w.Current.Proc.StoreUpSince) < limit+clockSlack
}

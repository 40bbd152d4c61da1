package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// rowReplaced notes that a row was lost or has an older state again. A row that does not know what has happened since
// cannot keep every rule. Those that remain: no job ends for it, no job starts on what another run left, no host is
// given to two requests, many machines without a record stay, and everything settles.
func (w *Watcher) rowReplaced(e world.RowReplaced) {
	if e.JobID != 0 {
		w.jobsReplaced[e.JobID] = true
	}
	if e.WorkID != "" {
		w.workRowReplaced(e.WorkID)
	}
	if e.WorkerID != "" {
		w.workersReplaced[e.WorkerID] = true
	}
	w.lost = w.lost || e.Ledger != ""
	if e.HostKey == "" && e.RequestID == "" {
		return // the rules of slots and of services go by the rows that there are
	}
	w.lost = true
	if e.HostKey != "" {
		runtime := time.Duration(0)
		if m := w.Machines[e.HostKey]; m != nil {
			runtime = w.Pools[m.Pool].Policy.MaxRuntime
		}
		w.of(e.HostKey).replaced(w.Now, runtime)
	} else {
		w.replaced[e.RequestID] = true
	}
}

func (h *history) wasReplaced() bool { return !h.replacedAt.IsZero() }

// forgot reports whether neither the record of a host nor the memory of its agent knows for which run it has registered in an
// assignment: both were lost or replaced since. The assignment is then known by its number alone, which an older record gives out again.
func (h *history) forgot(assignment int64) bool {
	at, ok := h.registeredAt[assignment]
	return ok && !at.After(h.replacedAt) && !at.After(h.stateLostAt)
}

// servesForgotten reports whether a host works by a registration that it waited with, and that is forgotten.
func (h *history) servesForgotten(of *world.Host) bool {
	by := of.Observed.Listener.Assignment
	return h.byStandby[by] != "" && h.forgot(by)
}

// WasReplaced reports whether the record of a host was lost, or got an older state, at some time.
func (w *Watcher) WasReplaced(hostKey string) bool { return w.of(hostKey).wasReplaced() }

// replaced notes that the record of a host was replaced, and until when its job may run: as long as its last known run, released or
// not, or if it was not ready for that yet, for a whole runtime.
func (h *history) replaced(now time.Time, runtime time.Duration) {
	until := now.Add(runtime)
	if !h.readyAt.Before(h.assignedAt) || !h.forRun && !h.readyAt.IsZero() {
		until = h.readyAt.Add(h.maxRuntime)
	}
	if !h.wasReplaced() || until.After(h.mayRunUntil) {
		h.mayRunUntil = until
	}
	h.replacedAt = now
}

// replacedLately reports whether a job may run on a host whose record was replaced, whatever the record says.
func (h *history) replacedLately(now time.Time) bool {
	return h.wasReplaced() && now.Add(clockSlack).Before(h.mayRunUntil)
}

// releasedAsBooting reports whether the record of a host became, within the last minute, one of a host that boots, which has no
// report, and its run was released, or its request rolled back, lately. Then controld cannot know that the host did more.
func (w *Watcher) releasedAsBooting(l *history, before lifecycle.Record) bool {
	q, err := w.Truth.Request(engine.Background, before.Repository, before.RunID, before.RequestID)
	return err == nil && before.State == lifecycle.StateCreated && l.wasReplaced() && w.Now.Sub(l.replacedAt) < time.Minute &&
		(q.Released() || q.Outcome == lifecycle.OutcomeShort) && w.Now.Sub(w.settledAt[q.RequestID]) < restored.Old
}

// keptAsRestored reports whether controld has kept a host with a restored record for as long as it can: it does not know the longer
// maximum runtime of a run that came later.
func (w *Watcher) keptAsRestored(m *world.Machine, r lifecycle.Record) bool {
	until := restored.Until(r.RestoredAt, r.MaxRuntime, w.Pools[m.Pool].Policy.MaxRuntime)
	return r.Restored() && !w.Now.Add(clockSlack).Before(until)
}

// bootsAgain reports whether the record of a host that was ready for a request was restored after the request was settled, and is
// one in which the host was not ready yet. The host serves the request, and the answer to a call that was waiting has that record.
func (w *Watcher) bootsAgain(q lifecycle.Request, r lifecycle.Record) bool {
	l := w.of(r.HostKey)
	return (r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed) && r.RequestID == q.RequestID && q.Outcome == lifecycle.OutcomeReady &&
		l.readyFor[q.RequestID] && l.wasReplaced() && !l.replacedAt.Before(w.settledAt[q.RequestID])
}

// unrecordedAfter is the grace period of the cloud sweep: no younger machine is judged.
const unrecordedAfter = 5 * time.Minute

// checkUnrecorded checks that a machine without a record is ours, that no job runs on it, and that it is ended only
// when few have none. It goes by what the sweep that ends it could see.
func (w *Watcher) checkUnrecorded(id string) {
	m := w.Machines[id]
	if m == nil {
		return
	}
	if m.Copied {
		w.Broken(RuleNotOurs, "%s is ended, which another launched", id)
	}
	if _, err := w.Truth.Instance(engine.Background, m.HostKey); err == nil || !w.of(m.HostKey).wasReplaced() {
		return
	}
	listed := w.Current.LastLook(world.SeesMachines).At
	l := w.of(m.HostKey)
	if busy := l.busySince; !busy.IsZero() && w.Now.Before(l.replacedAt.Add(w.Pools[m.Pool].Policy.MaxRuntime)) && m.Host != nil && m.Host.Worker != nil && !m.Host.Hostile && busy.Add(world.MaxLag).Before(listed) {
		w.Broken(RuleBusyEnded, "%s has no record, and is ended while busy since %s", id, engine.SinceEpoch(busy))
	}
	lost, all := 0, 0
	for _, m := range w.Living() {
		if all++; m.Copied || listed.Sub(m.LaunchedAt) < unrecordedAfter+listLagAtMost {
			continue
		}
		_, err := w.Truth.Instance(engine.Background, m.HostKey)
		if at := w.of(m.HostKey).replacedAt; err != nil && at.Before(listed) && m.State != lifecycle.MachineEnding {
			lost++
		}
	}
	if silence.Mass(lost, all) && !l.endedBefore(listed) {
		w.Broken(RuleManyUnrecorded, "%s is ended while %d of %d machines have no record", id, lost, all)
	}
}

// endedBefore reports whether the record of the host was terminated before it was lost, which was after a listing: a sweep that began with
// that listing can have read the record.
func (h *history) endedBefore(listed time.Time) bool {
	return h.ended != "" && !h.endedAt.After(h.replacedAt) && listed.Before(h.replacedAt)
}

// listLagAtMost is how long a listing may lack a new machine, and a clock be wrong.
const listLagAtMost = time.Minute

// checkReplacedEnd checks that a host whose record was replaced does not end itself under a job.
func (w *Watcher) checkReplacedEnd(h *world.Host, l *history, why string) {
	most := w.Pools[h.Machine.Pool].Policy.MaxRuntime
	if h.Worker != nil && l.replacedLately(w.Now.Add(selfEndSlack)) && w.Now.Sub(l.readyAt) < min(most, l.maxRuntime)-selfEndSlack {
		w.Broken(RuleSelfEnd, "%s ends itself under %s: %s", h.ID, h.Worker, why)
	}
}

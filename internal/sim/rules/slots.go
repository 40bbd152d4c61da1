package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// jobWritten checks that the state of a job goes forward only: webhooks come late, repeatedly and in any order.
func (w *Watcher) jobWritten(before, after lifecycle.Job) {
	switch {
	case before.Version == 0:
	case after.Version != before.Version+1:
		w.Broken(RuleVersion, "job %d goes from version %d to %d", after.ID, before.Version, after.Version)
	case slices.Index(lifecycle.JobStates, after.State) < slices.Index(lifecycle.JobStates, before.State):
		w.Broken(RuleJobBack, "job %d goes from %s to %s", after.ID, before.State, after.State)
	}
}

// slotsWritten checks that a pool has at most as many slots as it may, and that no slot ends under its host.
func (w *Watcher) slotsWritten(before, after slots.Table) {
	if most := w.JobPools[after.Pool].Maximum; most > 0 && len(after.Open) > most {
		w.Broken(RuleSlots, "pool %s has %s, and may have %d", after.Pool, world.SlotsLine(after), most)
	}
	for _, t := range before.Open {
		if slices.ContainsFunc(after.Open, func(o slots.Slot) bool { return o.Number == t.Number }) {
			continue
		}
		if host := w.hostOfSlot(t, t.RunID(after.Pool)); host != "" {
			w.Broken(RuleSlotEnded, "slot %d of pool %s ends while %s is at work for it", t.Number, after.Pool, host)
		}
	}
}

// hostOfSlot is a host that works for a slot, by its run id; "": there is none. A host that the slot's request was settled without
// goes back by itself. So does one that a restored request names in place of the slot's own: it is of an earlier slot, whose number
// was given again after the table of slots was lost.
func (w *Watcher) hostOfSlot(t slots.Slot, runID string) string {
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || r.Repository != t.Repository || r.RequestID != runID || r.State == lifecycle.StateTerminated {
			continue
		}
		if w.replaced[runID] && t.HostKey != "" && t.HostKey != r.HostKey {
			continue
		}
		if q, err := w.Truth.Request(engine.Background, r.Repository, runID, runID); err != nil || !q.Settled() || q.Has(r.HostKey) {
			return fmt.Sprintf("%s, which is %s,", r.HostKey, r.Condition())
		}
	}
	return ""
}

// jobBound is how long a job of a pool may wait once the faults are over. A job whose slot ended without one is passed over
// for up to an hour; others take their turns.
const jobBound = 70 * time.Minute

// slotBound is how long a pool may have a slot beyond those that jobs need: until its host has booted and was unclaimed for
// long enough, or until its end is noticed.
const slotBound = 20 * time.Minute

// checkPoolJobs checks that the jobs that wait get hosts within bounded time, and that there are not more hosts than they need.
func (w *Watcher) checkPoolJobs() {
	if w.CalmSince.IsZero() || w.Now.Sub(w.CalmSince) < settleAfter {
		return
	}
	for _, j := range w.GitHub.Jobs {
		if waits := min(w.Now.Sub(j.QueuedAt), w.Now.Sub(w.CalmSince)); j.Waits() && waits > jobBound && !w.Excused(j) {
			w.Broken(RuleJobUnserved, "job %d waits since %s, and has neither a host nor a reason", j.ID, engine.SinceEpoch(j.QueuedAt))
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(w.JobPools)) {
		w.checkSpareSlots(engine.Must1(w.Truth.SlotTable(engine.Background, pool)))
	}
}

// checkSpareSlots checks that a pool does not keep more slots without a job than jobs wait, as far as is known: a job whose end was
// not announced is asked about after an hour.
func (w *Watcher) checkSpareSlots(t slots.Table) {
	spare := -w.JobPools[t.Pool].Minimum
	for _, o := range t.Open {
		if !o.Started {
			spare++
		}
	}
	for _, j := range w.GitHub.Jobs {
		if row, err := w.Truth.Job(engine.Background, j.ID); j.Waits() && !w.Excused(j) || err == nil && row.State == lifecycle.JobWaiting {
			spare--
		}
	}
	switch since, known := w.spareSince[t.Pool]; {
	case spare <= 0:
		delete(w.spareSince, t.Pool)
	case !known:
		w.spareSince[t.Pool] = w.Now
	case w.Now.Sub(since) > slotBound:
		w.Broken(RuleSlotKept, "since %s more slots are kept than jobs wait: %s", engine.SinceEpoch(since), world.SlotsLine(t))
	}
}

// Excused reports whether a job may wait for ever: its webhook was refused, or what the fleet knew of it was lost, and GitHub lists no
// delivery of it as missed.
func (w *Watcher) Excused(j *world.WorkflowJob) bool {
	return w.Refused(j) || w.GitHub.ListsDeliveries && w.jobsReplaced[j.ID]
}

// Refused reports whether a webhook of a job was refused, and its row says why.
func (w *Watcher) Refused(j *world.WorkflowJob) bool {
	for _, id := range append([]string{fmt.Sprintf("found-%d", j.ID)}, j.Deliveries...) {
		if row, err := w.Truth.Webhook(engine.Background, id); err == nil && strings.HasPrefix(row.Reason, "refused: ") {
			w.Mark(engine.MarkRefusedFork)
			return true
		}
	}
	return false
}

package jobs

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

// This file has what a job has waited for when a slot is assigned for it, for the log of the job that its host gets.

// noteWaits notes it for the new slots. The table is as it was before they were assigned.
func (b *reconcilePool) noteWaits(assigned []slots.Slot) {
	b.waits = map[int64]arrival.Wait{}
	for _, t := range assigned {
		j := b.jobOf(t)
		if j.ID == 0 {
			continue
		}
		w := arrival.Wait{QueuedAt: j.QueuedAt}
		why := waiting.Kept(waiting.Facts{Job: j, Open: b.slots.Open, Maximum: b.pool.Maximum, Pause: b.pause, Budget: b.env.spentFor(j.ID)})
		w.Held, w.HeldBy = why.Text, string(why.Code)
		b.waits[t.Number] = w
	}
}

// jobOf is the job for which a slot was assigned, if it was read; else it has no id.
func (b *reconcilePool) jobOf(t slots.Slot) lifecycle.Job {
	i := slices.IndexFunc(b.waiting, func(j lifecycle.Job) bool { return j.ID == t.JobID })
	if t.JobID == 0 || i < 0 {
		return lifecycle.Job{}
	}
	return b.waiting[i]
}

// spentAtMost bounds the size of Jobs.spent. At the bound the map is emptied.
const spentAtMost = 4096

func (js *Jobs) noteSpent(job int64, u *budget.Use) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if len(js.spent) >= spentAtMost {
		clear(js.spent)
	}
	js.spent[job] = u
}

// spentFor is the budget that kept a job; nil: none is known to have.
func (js *Jobs) spentFor(job int64) *budget.Use {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.spent[job]
}

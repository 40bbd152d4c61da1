package jobs

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
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
		why := waiting.Kept(waiting.Facts{Job: j, Open: b.slots.Open, Maximum: b.pool.Maximum, Pause: b.pause}, b.env.notedFor(j.ID))
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

// notedAtMost bounds the size of Jobs.noted. At the bound the map is emptied.
const notedAtMost = 4096

// note notes what keeps a job from a host just now.
func (js *Jobs) note(job int64, why lifecycle.Reason) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.noted = room(js.noted, notedAtMost)
	js.noted[job] = why
}

// noteAway notes that GitHub keeps a job, if it does not answer and nothing more precise of it was noted.
func (js *Jobs) noteAway(job int64, now time.Time) {
	if js.Hosts.GitHubHealth.Away(now) && js.notedFor(job).Code != lifecycle.ReasonGitHubUnavailable {
		js.note(job, waiting.GitHubAway())
	}
}

// notedFor is what was noted of a job last; no reason: nothing was.
func (js *Jobs) notedFor(job int64) lifecycle.Reason {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.noted[job]
}

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// job is one job of a workflow run, as GitHub has it.
type job struct {
	name       string
	repository string
	runID      string // GITHUB_RUN_ID: the run that it really belongs to
	label      string // the runner label that it asks for
	length     time.Duration
	begins     func(*runner) // called when a runner takes it; may be nil
	done       func()        // called when it ended, in whatever way
	began      bool
	ended      bool
}

// enqueue adds a job to those that wait for a runner.
func (g *githubWorld) enqueue(j *job) {
	g.w.tell("github", "job queued", j.name+" for "+j.label)
	g.queued = append(g.queued, j)
	g.assign()
}

// drop removes the waiting jobs that keep refuses.
func (g *githubWorld) drop(keep func(*job) bool) {
	g.queued = slices.DeleteFunc(g.queued, func(j *job) bool { return !keep(j) })
}

// assign gives waiting jobs to runners that are online and free.
func (g *githubWorld) assign() {
	if len(g.queued) == 0 || !g.up() {
		return
	}
	g.queued = slices.DeleteFunc(g.queued, func(j *job) bool {
		for _, r := range g.runners {
			if r.Online && r.job == nil && r.repository == j.repository && slices.Contains(r.labels, j.label) {
				g.give(j, r)
				return true
			}
		}
		return false
	})
}

// give hands a job to a runner. A job that the runner does not pick up is queued again.
func (g *githubWorld) give(j *job, r *runner) {
	r.job = j
	w := g.w
	w.after(w.between(100*time.Millisecond, 2*time.Second), func() {
		if !r.Online || !r.host.startJob(j, r) {
			w.after(time.Minute, func() {
				r.job = nil
				if !j.began {
					g.enqueue(j)
				}
			})
		}
	})
}

// finished ends a job, well or not.
func (g *githubWorld) finished(j *job, r *runner) {
	if j.ended {
		return
	}
	j.ended = true
	if r.job == j {
		r.job = nil
	}
	if j.done != nil {
		j.done()
	}
	g.assign()
}

// startJob is the runner on the host picking up a job: the worker starts, and
// the job-started hook lets it through or not.
func (h *host) startJob(j *job, r *runner) bool {
	if !h.alive || h.worker != nil || h.runner != r || h.observed.Listener.Phase != agent.ListenerListening {
		return false
	}
	w := h.w
	j.began = true
	if !h.hookAllows(j) {
		w.tell(h.id, "job refused", j.name)
		w.checkRefused(h, j)
		w.mark(markRefused)
		h.observed.Refused = j.runID
		h.changed()
		w.after(time.Second, func() { w.github.finished(j, r) })
		return true
	}
	w.checkJob(h, j)
	w.tell(h.id, "job begins", j.name)
	if j.begins != nil {
		j.begins(r)
	}
	h.worker, h.dirty, h.lastRun = j, true, lifecycle.RunKey(j.repository, j.runID)
	h.observed.Busy = true
	h.observed.Jobs++
	h.changed()
	w.after(j.length, func() { h.endJob(j, r, "done") })
	return true
}

// hookAllows is the job-started hook.
func (h *host) hookAllows(j *job) bool {
	return h.observed.Allowed == agent.Allowed{RunID: j.runID, Repository: j.repository} || h.allowsOne(j)
}

// endJob is the end of the worker.
func (h *host) endJob(j *job, r *runner, how string) {
	if h.worker != j {
		return
	}
	h.worker, h.observed.Busy = nil, false
	h.w.tell(h.id, "job "+how, j.name)
	if how == "done" {
		h.w.mark(markJobDone)
		if rec, err := h.w.truth.Instance(background, h.id); err == nil && rec.State == lifecycle.StateIdle {
			h.w.mark(markDrained)
		}
	}
	h.oneJobDone()
	h.changed()
	h.w.github.finished(j, r)
}

func (j *job) String() string { return fmt.Sprintf("%s of run %s", j.name, j.runID) }

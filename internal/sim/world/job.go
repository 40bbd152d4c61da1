package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// Job is one job of a workflow run, as GitHub has it.
type Job struct {
	Name       string
	Repository string
	RunID      string // GITHUB_RUN_ID: the run that it really belongs to
	Label      string // the runner label that it asks for
	Length     time.Duration
	Fork       bool          // its run is of a fork
	Begins     func(*Runner) // called when a runner takes it; may be nil
	Done       func()        // called when it ended, in whatever way
	runner     *Runner       // that picked it up
	began      bool
	ended      bool
}

// Enqueue adds a job to those that wait for a runner.
func (g *GitHub) Enqueue(j *Job) {
	g.w.Tell("github", "job queued", j.Name+" for "+j.Label)
	g.queued = append(g.queued, j)
	g.Assign()
}

// Drop removes the waiting jobs that keep refuses.
func (g *GitHub) Drop(keep func(*Job) bool) {
	g.queued = slices.DeleteFunc(g.queued, func(j *Job) bool { return !keep(j) })
}

// Assign gives waiting jobs to runners that are online and free.
func (g *GitHub) Assign() {
	if len(g.queued) == 0 || !g.up() {
		return
	}
	g.queued = slices.DeleteFunc(g.queued, func(j *Job) bool {
		for _, r := range g.Runners {
			if r.Online && r.Job == nil && r.Repository == j.Repository && r.takes(j.Label, g.w.Now) {
				g.give(j, r)
				return true
			}
		}
		return false
	})
}

// give hands a job to a runner. A job that the runner does not pick up is queued again.
func (g *GitHub) give(j *Job, r *Runner) {
	r.Job = j
	w := g.w
	soon, late := 100*time.Millisecond, 2*time.Second
	if w.Hot {
		late = 500 * time.Millisecond
	}
	w.After(w.Between(soon, late), func() {
		if !r.Online || !r.Host.startJob(j, r) {
			w.After(time.Minute, func() {
				r.Job = nil
				if !j.began {
					g.Enqueue(j)
				}
			})
		}
	})
}

// finished ends a job, well or not.
func (g *GitHub) finished(j *Job, r *Runner) {
	if j.ended {
		return
	}
	j.ended = true
	if r.Job == j {
		r.Job = nil
	}
	if j.Done != nil {
		j.Done()
	}
	g.Assign()
}

// startJob is the runner on the host picking up a job: the worker starts, and
// the job-started hook lets it through or not.
func (h *Host) startJob(j *Job, r *Runner) bool {
	if !h.Alive || h.Worker != nil || h.Runner != r || h.Observed.Listener.Phase != agent.ListenerListening {
		return false
	}
	j.began, j.runner = true, r
	if h.Observed.Allowed.Standby {
		h.waitInHook(j, r)
		return true
	}
	h.judge(j, r)
	return true
}

// judge is the job-started hook, once it knows what may start.
func (h *Host) judge(j *Job, r *Runner) {
	w := h.World
	if !h.hookAllows(j) {
		w.Tell(h.ID, "job refused", j.Name)
		w.emit(JobRefused{h, j})
		w.Mark(engine.MarkRefused)
		h.Observed.Refused = j.RunID
		h.Changed()
		w.After(time.Second, func() { w.GitHub.finished(j, r) })
		return
	}
	w.emit(JobBegins{h, j})
	h.writeViews(j)
	h.becomeRoot(j)
	w.Tell(h.ID, "job begins", j.Name)
	if j.Begins != nil {
		j.Begins(r)
	}
	h.Worker, h.Dirty, h.LastRun = j, true, lifecycle.RunKey(j.Repository, j.RunID)
	h.Observed.Busy = true
	h.Observed.Jobs++
	h.Changed()
	w.After(j.Length, func() { h.endJob(j, r, "done") })
}

// hookAllows is the job-started hook.
func (h *Host) hookAllows(j *Job) bool {
	return h.Observed.Allowed == agent.Allowed{RunID: j.RunID, Repository: j.Repository} || h.AllowsOne(j)
}

// endJob is the end of the worker.
func (h *Host) endJob(j *Job, r *Runner, how string) {
	if h.Worker != j {
		return
	}
	h.Worker, h.waits, h.Observed.Busy = nil, nil, false
	h.World.Tell(h.ID, "job "+how, j.Name)
	if how == "done" {
		h.World.Mark(engine.MarkJobDone)
		if rec, err := h.World.Truth.Instance(engine.Background, h.ID); err == nil && rec.State == lifecycle.StateIdle {
			h.World.Mark(engine.MarkDrained)
		}
	}
	h.oneJobDone()
	h.Changed()
	h.World.GitHub.finished(j, r)
}

func (j *Job) String() string { return fmt.Sprintf("%s of run %s", j.Name, j.RunID) }

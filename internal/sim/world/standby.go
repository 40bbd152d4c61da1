package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// labelsOf are the labels with which a runner registers. A host in standby has one alone, which no job names.
func labelsOf(a agent.Assignment) []string {
	if a.Label != "" {
		return []string{a.Label.Reveal()}
	}
	return a.Labels
}

// formerFor is how long GitHub may still give a runner the jobs of a label that was taken from it: actions/runner#4225
// saw that, also of a runner that another had replaced under the same name.
const formerFor = 10 * time.Minute

// taken reports whether GitHub has a runner by the name. A registration ahead of need replaces none.
func (g *GitHub) taken(repository, name string) bool {
	return slices.ContainsFunc(g.Runners, func(r *Runner) bool { return r.Repository == repository && r.Name == name })
}

// Labels are those of the runner.
func (r *Runner) Labels() []string { return r.labels }

// takes reports whether GitHub may give the runner a job that names the label.
func (r *Runner) takes(label string, now time.Time) bool {
	return slices.Contains(r.labels, label) || slices.Contains(r.former, label) && now.Before(r.formerUntil)
}

// setLabels replaces the labels of a runner. GitHub matches the waiting jobs at once.
func (g *GitHub) setLabels(r *Runner, labels []string) {
	if r.Deleted {
		return
	}
	if !slices.Equal(r.labels, labels) {
		r.former, r.formerUntil = r.labels, g.w.Now.Add(formerFor)
	}
	r.labels = slices.Clone(labels)
	g.w.Tell("github", "labels set", fmt.Sprintf("%s %q", r.Name, labels[:1]))
	g.w.emit(LabelsSet{r, labels})
	g.Assign()
}

// ByID is the runner with the id; nil: there is none.
func (g *GitHub) ByID(repository string, id int64) *Runner {
	i := slices.IndexFunc(g.Runners, func(r *Runner) bool { return r.Repository == repository && r.ID == id })
	if i < 0 {
		return nil
	}
	return g.Runners[i]
}

// SetLabels implements fleet.GitHub. A call whose caller gave up may take effect later.
func (p GitHubPort) SetLabels(_ context.Context, repository string, id int64, labels []string) error {
	w := p.w
	what := fmt.Sprintf("set the labels of runner %d", id)
	err := p.call("set labels", func() error {
		r := w.GitHub.ByID(repository, id)
		if r == nil || w.Chance(engine.FaultLabelsMissing) {
			return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
		}
		if w.Chance(engine.FaultLabelsLate) {
			w.After(w.Between(time.Second, 20*time.Second), func() { w.GitHub.setLabels(r, labels) })
			return unavailable(what, "no answer for now")
		}
		w.GitHub.setLabels(r, labels)
		if w.Chance(engine.FaultLabelsLost) {
			return unavailable(what, "no answer")
		}
		return nil
	})
	w.called("GitHub: "+what, err)
	return err
}

// hookPatience is how long the job-started hook of a host in standby waits for the claim of the job's run, and
// hookPoll how often it looks.
const (
	hookPatience = 5 * time.Second
	hookPoll     = 100 * time.Millisecond
)

// hookWait is a job that waits in its job-started hook. Its worker lives.
type hookWait struct {
	job    *Job
	runner *Runner
	since  time.Time
}

func (h *Host) waitInHook(j *Job, r *Runner) {
	w := &hookWait{j, r, h.World.Now}
	h.Worker, h.waits, h.Observed.Busy = j, w, true
	h.World.Tell(h.ID, "job waits in its hook", j.Name)
	h.Changed()
	h.World.After(hookPatience, func() { h.hookJudges(w) })
	if h.World.Chance(engine.FaultHookCanceled) {
		h.World.After(h.World.Between(0, hookPatience), func() { h.hookEnds(w) })
	}
}

// hookEnds is the end of a worker whose job was canceled while it waited.
func (h *Host) hookEnds(w *hookWait) {
	if !h.Alive || h.waits != w {
		return
	}
	h.Worker, h.waits, h.Observed.Busy = nil, nil, false
	h.World.Tell(h.ID, "job canceled in its hook", w.job.Name)
	h.Changed()
	h.World.GitHub.finished(w.job, w.runner)
}

// hookSees lets the waiting hook see what may start now.
func (h *Host) hookSees() {
	if w := h.waits; w != nil && !h.Observed.Allowed.Standby {
		h.World.After(hookPoll, func() { h.hookJudges(w) })
	}
}

// hookJudges ends the wait.
func (h *Host) hookJudges(w *hookWait) {
	if !h.Alive || h.waits != w {
		return
	}
	h.Worker, h.waits, h.Observed.Busy = nil, nil, false
	switch {
	case h.hookAllows(w.job):
		h.World.Mark(engine.MarkHookWaits)
	case h.Observed.Allowed.Standby:
		h.World.Mark(engine.MarkUnclaimed)
	}
	h.judge(w.job, w.runner)
}

// Forget has GitHub delete the registration of a host that listens. Its listener learns of it after a while.
func (g *GitHub) Forget(h *Host) {
	r, started := h.Runner, h.Observed.Listener.StartedAt
	g.Remove(r)
	g.w.After(g.w.Between(0, 30*time.Second), func() {
		l := h.Observed.Listener
		if h.Alive && h.Runner == r && l.Phase == agent.ListenerListening && l.StartedAt.Equal(started) {
			h.Observed.Listener.Unconfigured = true
			h.Exit(agent.CodeDone)
		}
	})
}

// Stray gives a listening runner a job that names none of its labels.
func (g *GitHub) Stray(r *Runner, runID string) {
	r.Stray = true
	g.give(&Job{Name: "stray job of " + runID, Repository: r.Repository, RunID: runID, Length: time.Minute}, r)
}

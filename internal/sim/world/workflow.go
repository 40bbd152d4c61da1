package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// WorkflowJob is a job that asks for the label of a job pool, as GitHub has it. Each is of a run of its own.
type WorkflowJob struct {
	lifecycle.WorkflowJob
	// Fork: its run is of a fork.
	Fork bool
	// Deliveries are the ids of its webhooks.
	Deliveries []string
	job        *Job
}

// anothersRunner is the id of a runner that is not of the fleet.
const anothersRunner = 1_000_000

// Ask queues a job that asks for the label of a job pool.
func (g *GitHub) Ask(repository, label string, length time.Duration) *WorkflowJob {
	id := int64(len(g.Jobs) + 1)
	w := g.w
	j := &WorkflowJob{Fork: w.Chance(engine.FaultJobOfFork), WorkflowJob: lifecycle.WorkflowJob{
		ID: id, Repository: repository, RunID: fmt.Sprintf("flow-%d", id), RunAttempt: 1, Labels: []string{label},
		Status: lifecycle.StatusQueued, QueuedAt: w.Now,
	}}
	g.Jobs = append(g.Jobs, j)
	j.job = &Job{Name: fmt.Sprintf("pool job %d", id), Repository: repository, RunID: j.RunID, Label: label, Length: length, Fork: j.Fork}
	j.job.Begins = func(r *Runner) {
		w.Mark(engine.MarkPoolJob)
		g.begins(j, r.Name, r.ID)
	}
	j.job.Done = func() { g.completed(j) }
	g.deliver(j)
	g.Enqueue(j.job)
	return j
}

// begins notes that a runner has a job.
func (g *GitHub) begins(j *WorkflowJob, runner string, id int64) {
	j.Status, j.RunnerName, j.RunnerID, j.StartedAt = lifecycle.StatusInProgress, runner, id, g.w.Now
	g.deliver(j)
}

func (g *GitHub) completed(j *WorkflowJob) {
	if j.Status == lifecycle.StatusCompleted {
		return
	}
	if r := j.job.runner; r != nil && j.RunnerName == "" { // its hook refused it
		j.RunnerName, j.RunnerID = r.Name, r.ID
	}
	j.Status, j.CompletedAt = lifecycle.StatusCompleted, g.w.Now
	g.deliver(j)
}

// Waits reports whether no runner has the job yet.
func (j *WorkflowJob) Waits() bool { return j.Status == lifecycle.StatusQueued && !j.job.began }

// Cancel ends a job, as a person does.
func (g *GitHub) Cancel(j *WorkflowJob) {
	if j.Status == lifecycle.StatusCompleted {
		return
	}
	g.w.Tell("github", "job canceled", j.job.Name)
	g.Drop(func(o *Job) bool { return o != j.job })
	if r := j.job.runner; r != nil && r.Host.Worker == j.job {
		r.Host.endJob(j.job, r, "canceled")
		return
	}
	g.completed(j)
}

// Steal gives a waiting job to a runner that is not of the fleet.
func (g *GitHub) Steal(j *WorkflowJob) {
	if !slices.Contains(g.queued, j.job) {
		return
	}
	g.w.Tell("github", "job taken by another's runner", j.job.Name)
	g.Drop(func(o *Job) bool { return o != j.job })
	g.begins(j, "builder", anothersRunner)
	g.w.After(j.job.Length, func() { g.completed(j) })
}

// find is the job with an id; nil: there is none.
func (g *GitHub) find(id int64) *WorkflowJob {
	if id < 1 || id > int64(len(g.Jobs)) {
		return nil
	}
	return g.Jobs[id-1]
}

// ofRun is the job of a run; nil: there is none.
func (g *GitHub) ofRun(runID string) *WorkflowJob {
	i := slices.IndexFunc(g.Jobs, func(j *WorkflowJob) bool { return j.RunID == runID })
	if i < 0 {
		return nil
	}
	return g.Jobs[i]
}

package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// JobsPort is the part of GitHub for jobs and job-scoped runners.
type JobsPort struct{ w *World }

func (p JobsPort) JIT(_ context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	r := p.w.GitHub.register(nil, repository, name, labels)
	p.w.called("GitHub: JIT configuration for runner "+name, nil)
	return lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "https://github.test/" + repository, Secret: lifecycle.Secret("jit-" + name)}, r.ID, nil
}

func (p JobsPort) WorkflowRun(_ context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	p.w.called("GitHub: get "+runID, nil)
	return lifecycle.WorkflowRun{
		RunID: runID, RunAttempt: 1, Repository: repository, RepositoryID: 1, OwnerID: 1, HeadRepositoryID: 1, Status: lifecycle.StatusInProgress,
	}, nil
}

func (p JobsPort) WorkflowJob(_ context.Context, _ string, id int64) (lifecycle.WorkflowJob, error) {
	return lifecycle.WorkflowJob{}, fmt.Errorf("get job %d: %w", id, lifecycle.ErrNotFound)
}

func (p JobsPort) RerunFailedJobs(context.Context, string, string) error { return lifecycle.ErrRefused }

func (p JobsPort) MissedDeliveries(context.Context, time.Time) ([]lifecycle.MissedDelivery, error) {
	return nil, lifecycle.ErrNotFound
}

func (p JobsPort) DeliveryPayload(context.Context, lifecycle.MissedDelivery) ([]byte, error) {
	return nil, lifecycle.ErrNotFound
}

func (p JobsPort) QueuedJobs(context.Context, string) ([]lifecycle.WorkflowJob, error) {
	return nil, nil
}

// registerJIT lets a host use the registration that was made for it.
func (h *Host) registerJIT(a agent.Assignment) (agent.Phase, lifecycle.Cause) {
	i := slices.IndexFunc(h.World.GitHub.Runners, func(r *Runner) bool { return r.Repository == a.Repository && r.Name == a.RunnerName })
	if i < 0 {
		return agent.PhaseFailed, lifecycle.CauseGitHub
	}
	h.Runner = h.World.GitHub.Runners[i]
	h.Runner.Host, h.Dirty, h.Registered[a.Number] = h, true, true
	h.Observed.Registration, h.Observed.RegisteredAs = true, lifecycle.RegistrationJIT
	return agent.PhaseOK, ""
}

// AllowsOne reports whether the host takes one job of the repository and has had none.
func (h *Host) AllowsOne(j *Job) bool {
	return h.Observed.Allowed.JobsOf == j.Repository && h.Observed.Jobs == 0
}

// oneJobDone ends the listener of a job-scoped runner after its job. GitHub removes its
// registration.
func (h *Host) oneJobDone() {
	if h.Observed.RegisteredAs != lifecycle.RegistrationJIT {
		return
	}
	h.World.GitHub.Remove(h.Runner)
	h.Exit(agent.CodeDone)
}

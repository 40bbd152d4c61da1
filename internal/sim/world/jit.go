package world

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// JobsPort is the part of GitHub for jobs and job-scoped runners.
type JobsPort struct{ w *World }

func (p JobsPort) call(what string, do func() error) error { return GitHubPort(p).call(what, do) }

// JIT implements fleet.GitHubJobs. It takes over the name of a registration that has no job.
func (p JobsPort) JIT(_ context.Context, repository, name string, labels []string) (reg lifecycle.Registration, id int64, err error) {
	p.w.GitHub.registering[name]++
	defer func() { p.w.GitHub.registering[name]-- }()
	err = p.call("make JIT configuration", func() error {
		if r := p.w.GitHub.named(repository, name); r != nil && r.Job != nil {
			return fmt.Errorf("register runner %s: %w", name, lifecycle.ErrBusy)
		}
		id = p.w.GitHub.register(nil, repository, name, labels).ID
		return nil
	})
	p.w.called("GitHub: JIT configuration for runner "+name, err)
	if err != nil {
		return lifecycle.Registration{}, 0, err
	}
	return lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "https://github.test/" + repository, Secret: jitSecret(id)}, id, nil
}

// Registering reports whether a runner of that name is being registered ahead of the claim of its host.
func (g *GitHub) Registering(name string) bool { return g.registering[name] > 0 }

// jitSecret is the configuration of one registration.
func jitSecret(id int64) lifecycle.Secret { return lifecycle.Secret(fmt.Sprintf("jit-%d", id)) }

// WorkflowRun implements fleet.GitHubJobs. The caller is not interrupted in it, since questions about one run that are asked at once
// share one call: in a world of one goroutine they would wait for each other.
func (p JobsPort) WorkflowRun(_ context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	run := lifecycle.WorkflowRun{
		RunID: runID, RunAttempt: 1, Repository: repository, RepositoryID: repositoryID, OwnerID: repositoryID, HeadRepositoryID: repositoryID,
		Status: lifecycle.StatusInProgress,
	}
	p.w.Calls++
	var err error
	switch j := p.w.GitHub.ofRun(runID); {
	case !p.w.GitHub.up() || p.w.Chance(engine.FaultGitHubRefused):
		err = unavailable("get run", "no answer")
	case p.w.Chance(engine.FaultRunUnknown):
		err = fmt.Errorf("get run %s: %w", runID, lifecycle.ErrNotFound)
	case j != nil && j.Fork:
		run.HeadRepositoryID = forkID
	}
	p.w.called("GitHub: get "+runID, err)
	return run, err
}

// WorkflowJob implements fleet.GitHubJobs.
func (p JobsPort) WorkflowJob(_ context.Context, _ string, id int64) (is lifecycle.WorkflowJob, err error) {
	err = p.call("get job", func() error {
		j := p.w.GitHub.find(id)
		if j == nil {
			return fmt.Errorf("get job %d: %w", id, lifecycle.ErrNotFound)
		}
		is = j.WorkflowJob
		return nil
	})
	return is, err
}

// RerunFailedJobs implements fleet.GitHubJobs.
func (p JobsPort) RerunFailedJobs(context.Context, string, string) error { return lifecycle.ErrRefused }

// MissedDeliveries implements fleet.GitHubJobs.
func (p JobsPort) MissedDeliveries(_ context.Context, since time.Time) (missed []delivery.Missed, err error) {
	err = p.call("list missed deliveries", func() error {
		if !p.w.GitHub.ListsDeliveries {
			return fmt.Errorf("list deliveries: %w", lifecycle.ErrNotFound)
		}
		missed = p.w.GitHub.missedSince(since)
		return nil
	})
	return missed, err
}

// DeliveryPayload implements fleet.GitHubJobs.
func (p JobsPort) DeliveryPayload(_ context.Context, d delivery.Missed) (body []byte, err error) {
	err = p.call("get delivery", func() error {
		if body = p.w.GitHub.payload(d.ID); body == nil {
			return fmt.Errorf("get delivery %d: %w", d.ID, lifecycle.ErrNotFound)
		}
		return nil
	})
	return body, err
}

// QueuedJobs implements fleet.GitHubJobs.
func (p JobsPort) QueuedJobs(_ context.Context, repository string) (jobs []lifecycle.WorkflowJob, err error) {
	err = p.call("list queued jobs", func() error {
		for _, j := range p.w.GitHub.Jobs {
			if j.Repository == repository && j.Status == lifecycle.StatusQueued {
				p.w.Mark(engine.MarkListed)
				jobs = append(jobs, j.WorkflowJob)
			}
		}
		return nil
	})
	return jobs, err
}

// registerJIT lets a host use the registration that was made for it.
func (h *Host) registerJIT(a agent.Assignment) (agent.Phase, lifecycle.Cause) {
	r := h.World.GitHub.named(a.Repository, a.RunnerName)
	if r == nil || jitSecret(r.ID) != a.Registration.Secret {
		return agent.PhaseFailed, lifecycle.CauseGitHub
	}
	h.Runner = r
	h.Runner.Host, h.Dirty, h.Registered[a.Number] = h, true, true
	h.Observed.Registration, h.Observed.RegisteredAs = true, lifecycle.RegistrationJIT
	return agent.PhaseOK, ""
}

// AllowsOne reports whether the host takes one job of the repository and has had none. Most take none of a fork.
func (h *Host) AllowsOne(j *Job) bool {
	allowed := h.Observed.Allowed
	return allowed.JobsOf == j.Repository && h.Observed.Jobs == 0 && (allowed.Forks || !j.Fork)
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

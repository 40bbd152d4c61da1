package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// Only stories have a job pool.

// jobPoolName is what that pool is called, jobPoolLabel what its jobs ask for.
const (
	jobPoolName  = "jobs"
	jobPoolLabel = "remuda-small"
)

// addJobPool gives the story a job pool with room for two hosts.
func (s *script) addJobPool() {
	p := s.w.pools["default"]
	p.Name = jobPoolName
	s.w.pools[jobPoolName] = p
	s.jobPool = true
}

// jobOptions are those of the job pool; nil: there is none.
func (w *world) jobOptions() *fleet.JobOptions {
	if w.script == nil || !w.script.jobPool {
		return nil
	}
	return &fleet.JobOptions{
		Store: jobStore{w.truth, w.script}, GitHub: jobsPort{w},
		Parse: func(string, string, []byte, time.Time) (lifecycle.Webhook, error) {
			return lifecycle.Webhook{}, lifecycle.ErrWebhookIgnored // no delivery is missed
		},
		Pools: map[string]fleet.JobPool{jobPoolName: {
			JobPool: policy.JobPool{Maximum: 2, UnclaimedTimeout: 2 * time.Minute}, Labels: []string{jobPoolLabel},
			Spec:         lifecycle.Spec{ResourceClass: "small", Timeout: 10 * time.Minute},
			Repositories: []string{"acme/*"},
		}},
	}
}

// serveJobs runs what webhooks and job pools begin beside the sweeps.
func (r *replica) serveJobs() {
	if r.w.jobOptions() == nil {
		return
	}
	proc := r.proc
	r.fleet.ServeJobsWith(func(name string, op fleet.Op) {
		if proc.alive {
			r.drive(name, op, func(error) {})
		}
	})
}

// poolJob queues a job for the job pool, and sends its webhooks to a replica.
func (s *script) poolJob(rest string) error {
	id, length, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	j := lifecycle.WorkflowJob{
		ID: number, Repository: repositories[0], RunID: "run-of-" + id, RunAttempt: 1, Labels: []string{jobPoolLabel},
		Status: lifecycle.StatusQueued, QueuedAt: s.w.now,
	}
	queued := &job{name: "job " + id, repository: j.Repository, runID: j.RunID, label: jobPoolLabel, length: d}
	queued.begins = func(runner *runner) {
		j.Status, j.RunnerName, j.RunnerID, j.StartedAt = lifecycle.StatusInProgress, runner.Name, runner.ID, s.w.now
		s.webhook(j)
	}
	queued.done = func() {
		j.Status, j.CompletedAt = lifecycle.StatusCompleted, s.w.now
		s.webhook(j)
	}
	s.w.github.enqueue(queued)
	s.webhook(j)
	return nil
}

// webhook delivers how a job is, half a second later.
func (s *script) webhook(j lifecycle.WorkflowJob) {
	s.deliveries++
	hook := lifecycle.Webhook{DeliveryID: fmt.Sprintf("delivery-%d", s.deliveries), Action: j.Status, Job: &j, RepositoryID: 1, OwnerID: 1}
	s.w.after(500*time.Millisecond, func() {
		r := s.replica()
		s.tell("github", fmt.Sprintf("webhook to %s: job %d is %s", r.name, j.ID, j.Status))
		r.order("webhook", func(now time.Time) error { return r.fleet.TakeWebhook(background, hook, now) })
	})
}

// jobStore tells the story the writes of jobs, webhooks and slots.
type jobStore struct {
	*store.Store
	s *script
}

func (j jobStore) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	j.s.write("webhook "+w.DeliveryID, []string{"new", j.s.due(w.DueAt)}, "")
	return j.Store.CreateWebhook(ctx, w)
}

func (j jobStore) UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error) {
	j.s.write("webhook "+w.DeliveryID, []string{j.s.due(w.DueAt)}, w.Reason)
	return j.Store.UpdateWebhook(ctx, w)
}

func (j jobStore) CreateJob(ctx context.Context, job lifecycle.Job) error {
	j.s.write(fmt.Sprintf("job %d", job.ID), []string{"new", string(job.State)}, "")
	return j.Store.CreateJob(ctx, job)
}

func (j jobStore) UpdateJob(ctx context.Context, job lifecycle.Job) (lifecycle.Job, error) {
	j.s.write(fmt.Sprintf("job %d", job.ID), []string{string(job.State)}, job.Reason)
	return j.Store.UpdateJob(ctx, job)
}

func (j jobStore) UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error) {
	var open []string
	for _, o := range t.Open {
		slot := fmt.Sprintf("%d for job %d", o.Number, o.JobID)
		if o.Started {
			slot += ", begun"
		}
		open = append(open, slot)
	}
	if len(open) == 0 {
		open = append(open, "none")
	}
	j.s.write("slots of "+t.Pool, open, "")
	return j.Store.UpdateSlotTable(ctx, t)
}

// jobsPort is the part of GitHub for jobs and job-scoped runners.
type jobsPort struct{ w *world }

func (p jobsPort) JIT(_ context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	r := p.w.github.register(nil, repository, name, labels)
	p.w.script.called("GitHub: JIT configuration for runner "+name, nil)
	return lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "https://github.test/" + repository, Secret: lifecycle.Secret("jit-" + name)}, r.ID, nil
}

func (p jobsPort) WorkflowRun(_ context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	p.w.script.called("GitHub: get "+runID, nil)
	return lifecycle.WorkflowRun{
		RunID: runID, RunAttempt: 1, Repository: repository, RepositoryID: 1, OwnerID: 1, HeadRepositoryID: 1, Status: lifecycle.StatusInProgress,
	}, nil
}

func (p jobsPort) WorkflowJob(_ context.Context, _ string, id int64) (lifecycle.WorkflowJob, error) {
	return lifecycle.WorkflowJob{}, fmt.Errorf("get job %d: %w", id, lifecycle.ErrNotFound)
}

func (p jobsPort) RerunFailedJobs(context.Context, string, string) error { return lifecycle.ErrRefused }

func (p jobsPort) MissedDeliveries(context.Context, time.Time) ([]lifecycle.MissedDelivery, error) {
	return nil, lifecycle.ErrNotFound
}

func (p jobsPort) DeliveryPayload(context.Context, lifecycle.MissedDelivery) ([]byte, error) {
	return nil, lifecycle.ErrNotFound
}

func (p jobsPort) QueuedJobs(context.Context, string) ([]lifecycle.WorkflowJob, error) {
	return nil, nil
}

// registerJIT lets a host use the registration that was made for it.
func (h *host) registerJIT(a agent.Assignment) (agent.Phase, lifecycle.Cause) {
	i := slices.IndexFunc(h.w.github.runners, func(r *runner) bool { return r.repository == a.Repository && r.Name == a.RunnerName })
	if i < 0 {
		return agent.PhaseFailed, lifecycle.CauseGitHub
	}
	h.runner = h.w.github.runners[i]
	h.runner.host, h.dirty, h.registered[a.Number] = h, true, true
	h.observed.Registration, h.observed.RegisteredAs = true, lifecycle.RegistrationJIT
	return agent.PhaseOK, ""
}

// allowsOne reports whether the host takes one job of the repository and has had none.
func (h *host) allowsOne(j *job) bool {
	return h.observed.Allowed.JobsOf == j.repository && h.observed.Jobs == 0
}

// oneJobDone ends the listener of a job-scoped runner after its job. GitHub removes its
// registration.
func (h *host) oneJobDone() {
	if h.observed.RegisteredAs != lifecycle.RegistrationJIT {
		return
	}
	h.w.github.remove(h.runner)
	h.exit(agent.CodeDone)
}

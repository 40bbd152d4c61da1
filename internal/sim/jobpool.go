package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// The job pool of stories: pooljobs.go has that of lives.

// jobPoolName is what that pool is called, jobPoolLabel what its jobs ask for.
const (
	jobPoolName  = "jobs"
	jobPoolLabel = "remuda-small"
)

// addJobPool gives the story a job pool with room for two hosts.
func (s *script) addJobPool() {
	p := s.l.Pools["default"]
	p.Name = jobPoolName
	s.l.Pools[jobPoolName] = p
	s.jobPool = true
}

// jobOptions are those of the job pool; nil: there is none.
func (l *life) jobOptions() *fleet.JobOptions {
	if l.pooling() {
		return &fleet.JobOptions{Store: l.Store(), GitHub: l.JobsPort(), Parse: l.ParseDelivery, Pools: l.JobPools}
	}
	if l.script == nil || !l.script.jobPool {
		return nil
	}
	return &fleet.JobOptions{
		Store: jobStore{l.Truth, l.script}, GitHub: l.JobsPort(),
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
	if r.l.jobOptions() == nil {
		return
	}
	proc := r.proc
	r.fleet.ServeJobsWith(func(name string, op fleet.Op) {
		if proc.Alive {
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
		ID: number, Repository: world.Repositories[0], RunID: "run-of-" + id, RunAttempt: 1, Labels: []string{jobPoolLabel},
		Status: lifecycle.StatusQueued, QueuedAt: s.l.Now,
	}
	queued := &world.Job{Name: "job " + id, Repository: j.Repository, RunID: j.RunID, Label: jobPoolLabel, Length: d}
	queued.Begins = func(runner *world.Runner) {
		j.Status, j.RunnerName, j.RunnerID, j.StartedAt = lifecycle.StatusInProgress, runner.Name, runner.ID, s.l.Now
		s.webhook(j)
	}
	queued.Done = func() {
		j.Status, j.CompletedAt = lifecycle.StatusCompleted, s.l.Now
		s.webhook(j)
	}
	s.l.GitHub.Enqueue(queued)
	s.webhook(j)
	return nil
}

// webhook delivers how a job is, half a second later.
func (s *script) webhook(j lifecycle.WorkflowJob) {
	s.deliveries++
	hook := lifecycle.Webhook{DeliveryID: fmt.Sprintf("delivery-%d", s.deliveries), Action: j.Status, Job: &j, RepositoryID: 1, OwnerID: 1}
	s.l.After(500*time.Millisecond, func() {
		r := s.replica()
		s.tell("github", fmt.Sprintf("webhook to %s: job %d is %s", r.name, j.ID, j.Status))
		r.order("webhook", func(now time.Time) error { return r.fleet.TakeWebhook(engine.Background, hook, now) })
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

func (j jobStore) UpdateSlotTable(ctx context.Context, t slots.Table) (slots.Table, error) {
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

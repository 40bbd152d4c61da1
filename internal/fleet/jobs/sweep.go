package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Sweep goes on with what nobody has finished: webhooks, jobs of which
// nothing was heard, and the accounts of the pools. Its cost grows with what is
// due and with the number of job pools.
type Sweep struct {
	op.Stages
	env *Jobs

	hooks []lifecycle.Webhook
	jobs  []lifecycle.Job
	pools []string
	op    op.Op
	seen  map[string]bool
}

// NewSweep begins a sweep.
func (js *Jobs) NewSweep() *Sweep {
	s := &Sweep{env: js, Stages: js.Ops.Stages(""), seen: map[string]bool{}}
	s.pools = slices.Sorted(maps.Keys(js.Options.Pools))
	s.Next = s.listHooks
	return s
}

func (s *Sweep) listHooks(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Options.Store.DueWebhooks(ctx, now, lifecycle.PageOf{Limit: op.PageSize})
	if err != nil {
		return op.Again, fmt.Errorf("list due webhooks: %w", err)
	}
	for _, w := range page.Items {
		if !s.seen[w.DeliveryID] {
			s.seen[w.DeliveryID] = true
			s.hooks = append(s.hooks, w)
		}
	}
	s.Next = s.hook
	if len(s.hooks) == 0 {
		s.Next = s.listJobs
	}
	return op.Again, nil
}

// hook steps one webhook until it is done or has to wait. One that cannot be
// worked on is put off, and does not hold up the others.
func (s *Sweep) hook(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.hooks) == 0 {
		s.Next = s.listHooks
		return op.Again, nil
	}
	if s.op == nil {
		s.op = s.env.newHook(s.hooks[0])
	}
	progress, err := s.op.Step(ctx, now)
	if err == nil && !progress.Done && progress.Wait == 0 {
		return op.Again, nil
	}
	if err != nil {
		s.env.Log.Warn("webhook not worked on; trying again", logkey.Delivery, s.hooks[0].DeliveryID, logkey.Error, err)
	}
	w := s.hooks[0]
	s.hooks, s.op = s.hooks[1:], nil
	if err == nil {
		return op.Again, nil
	}
	w.DueAt = now.Add(hookAgain)
	if errors.Is(err, lifecycle.ErrRefused) {
		// Nothing changes it but somebody's hand: many such must not use up what
		// GitHub lets us call.
		w.DueAt = now.Add(max(hookAgain, now.Sub(w.ReceivedAt)/2))
	}
	if _, err := s.env.Options.Store.UpdateWebhook(ctx, w); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		if err = fmt.Errorf("put off webhook %s: %w", w.DeliveryID, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	return op.Again, nil
}

// listJobs takes up the jobs of which nothing was heard for long. With the store
// away nothing is left to do; with GitHub away they stay due.
func (s *Sweep) listJobs(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Options.Store.DueJobs(ctx, now, lifecycle.PageOf{Limit: op.PageSize})
	if err != nil {
		return op.Again, fmt.Errorf("list due jobs: %w", err)
	}
	s.jobs, s.Next = page.Items, s.job
	return op.Again, nil
}

// job asks GitHub about one job.
func (s *Sweep) job(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.jobs) == 0 {
		s.Next = s.balance
		return op.Again, nil
	}
	j := s.jobs[0]
	s.jobs = s.jobs[1:]
	is, err := s.env.Options.GitHub.WorkflowJob(ctx, j.Repository, j.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		is = lifecycle.WorkflowJob{ID: j.ID, Status: lifecycle.StatusCompleted, CompletedAt: now}
	case errors.Is(err, lifecycle.ErrRefused):
		// Those behind it are asked about all the same.
		s.env.Log.Warn("job not confirmed; asking again in an hour", logkey.Job, j.ID, logkey.Repository, j.Repository, logkey.Error, err)
		is = unconfirmed(j, now)
	case err != nil:
		s.env.Log.Warn("job not confirmed; asking again", logkey.Job, j.ID, logkey.Error, err)
		s.jobs = nil
		return op.Again, nil
	}
	if err := s.confirm(ctx, j, is, now); !s.Past(ctx, err) {
		return op.Again, err
	}
	return op.Again, nil
}

// confirm writes what GitHub says of a job now.
func (s *Sweep) confirm(ctx context.Context, j lifecycle.Job, is lifecycle.WorkflowJob, now time.Time) error {
	row, _ := s.env.served(is)
	if ahead(row.State, j.State) {
		j = advance(j, row, now)
	}
	if j.State != lifecycle.JobDone {
		j.DueAt = now.Add(jobLook)
	}
	if _, err := s.env.Options.Store.UpdateJob(ctx, j); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return fmt.Errorf("write job %d: %w", j.ID, err)
	}
	return nil
}

// waitsAtMost is when GitHub gives up a job that no runner took.
const waitsAtMost = 24 * time.Hour

// unconfirmed is what is taken for the word of GitHub on a job of which it refuses to
// tell, such as one of a repository that was deleted: nothing new. One that has waited for as long as GitHub lets a
// job wait is over, or it would take turns of its pool for as long as it is kept.
func unconfirmed(j lifecycle.Job, now time.Time) lifecycle.WorkflowJob {
	is := lifecycle.WorkflowJob{ID: j.ID}
	if j.State == lifecycle.JobWaiting && now.Sub(j.QueuedAt) >= waitsAtMost {
		is.Status, is.CompletedAt = lifecycle.StatusCompleted, now
	}
	return is
}

// balance brings the accounts of one pool in line.
func (s *Sweep) balance(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.pools) == 0 {
		return op.Done, nil
	}
	if s.op == nil {
		s.op = s.env.newBalance(s.pools[0])
	}
	progress, err := s.op.Step(ctx, now)
	if err != nil {
		s.env.Log.Warn("pool not balanced; trying again", logkey.Pool, s.pools[0], logkey.Error, err)
	}
	if err != nil || progress.Done || progress.Wait > 0 {
		s.pools, s.op = s.pools[1:], nil
	}
	return op.Again, nil
}

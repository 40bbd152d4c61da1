package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// endedDelivery begins the ids of the webhooks that are made up for the jobs of a run
// that lost a host.
const endedDelivery = "ended-"

// looksAtLeft reports whether there is anything to be looked at once a host has ended:
// jobs that wait for it, or room that it had.
func (f *Fleet) looksAtLeft(r lifecycle.Record) bool {
	return f.limits.On() || f.jobs != nil && r.JobsOf == ""
}

// left are the hosts of one page of the due sweep that ended and left a run behind.
// All had ended before the first of their runs is looked at, so that hosts of one run
// and the same labels need one look.
type left struct {
	hosts    []lifecycle.Record
	requests map[string]*lifecycle.Request
	// looked are the runs whose jobs were looked at, with class and labels.
	looked map[string]bool
}

func newLeft() left {
	return left{requests: map[string]*lifecycle.Request{}, looked: map[string]bool{}}
}

// lookAtLeft looks at the run that the next host has left. The webhook of a job may
// have found the host still there, and nobody else comes back to the job; and the
// request needs less room now. It is noted on the record until it is done.
func (s *DueSweep) lookAtLeft(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.left.hosts) == 0 {
		s.Next = s.machines
		return op.Again, nil
	}
	host := s.left.hosts[0]
	host.RunID, host.RequestID, host.Labels = host.LostBy.RunID, host.LostBy.RequestID, host.LostBy.Labels
	q, err := s.f.requestOf(ctx, host, s.left.requests)
	switch {
	case !s.Past(ctx, err):
		return op.Again, err
	case err != nil: // nobody can tell what it needs: its jobs are looked at all the same
	case q == nil || q.Released() || !q.Settled(): // an open one looks for another host by itself
		return s.lookedAtLeft(ctx)
	default:
		served, err := s.f.servesNoMore(ctx, *q, now)
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			clear(s.left.requests) // it moved: look again
			return op.Again, nil
		case !s.Past(ctx, err):
			return op.Again, err
		case err == nil:
			*q = served
		}
	}
	if host.ReplacedBy != "" {
		return s.lookedAtLeft(ctx) // its request asks for another by itself
	}
	key := strings.Join(append([]string{lifecycle.RunKey(host.Repository, host.RunID), host.ResourceClass}, host.Labels...), "\x00")
	if s.left.looked[key] {
		return s.lookedAtLeft(ctx)
	}
	jobs, err := s.f.waitingFor(ctx, host)
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.left.looked[key] = true
	s.Next = s.provideFor(jobs, s.f.idsOfRun(ctx, jobs))
	return op.Again, nil
}

// idsOfRun asks for the ids that the rules go by, once for all jobs of a run. Where
// GitHub does not answer each job's webhook asks in its own time.
func (f *Fleet) idsOfRun(ctx context.Context, jobs []lifecycle.Job) lifecycle.WorkflowRun {
	if len(jobs) == 0 || len(f.jobs.Rules) == 0 {
		return lifecycle.WorkflowRun{}
	}
	run, err := f.jobs.GitHub.WorkflowRun(ctx, jobs[0].Repository, jobs[0].RunID)
	if err != nil {
		f.log.Warn("a run that lost a host was not asked for; its jobs do", "run", jobs[0].RunID, "error", err)
	}
	return run
}

// provideFor has the next of the jobs looked at as if its webhook came now.
func (s *DueSweep) provideFor(jobs []lifecycle.Job, run lifecycle.WorkflowRun) func(context.Context, time.Time) (op.Progress, error) {
	return func(ctx context.Context, now time.Time) (op.Progress, error) {
		if len(jobs) == 0 {
			return s.lookedAtLeft(ctx)
		}
		j, host := jobs[0], s.left.hosts[0]
		err := s.f.TakeWebhook(ctx, lifecycle.Webhook{
			DeliveryID: fmt.Sprintf("%s%s-%d-%d", endedDelivery, host.InstanceID, host.Assignment, j.ID), Action: lifecycle.StatusQueued,
			RepositoryID: run.RepositoryID, OwnerID: run.OwnerID,
			Job: &lifecycle.WorkflowJob{
				ID: j.ID, Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, Labels: j.Labels,
				Status: lifecycle.StatusQueued, QueuedAt: j.QueuedAt,
			},
		}, now)
		if !errors.Is(err, ErrNotOurs) && !errors.Is(err, lifecycle.ErrExists) && !s.Past(ctx, err) {
			return op.Again, err
		}
		s.Next = s.provideFor(jobs[1:], run)
		return op.Again, nil
	}
}

// lookedAtLeft notes that nothing is left to be looked at. The machine follows.
func (s *DueSweep) lookedAtLeft(ctx context.Context) (op.Progress, error) {
	r := s.left.hosts[0]
	r.LostBy = nil
	stored, err := s.f.store.UpdateInstance(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrConflict): // another replica did it: the next sweep goes on
	case err != nil:
		if err = fmt.Errorf("write host %s: %w", r.InstanceID, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	default:
		s.ending = append(s.ending, stored)
	}
	s.left.hosts, s.Next = s.left.hosts[1:], s.lookAtLeft
	return op.Again, nil
}

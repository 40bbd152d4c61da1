package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// lookAtLeft looks at the run that the host in hand has left: the webhook of a job
// may have found the host still there while its end was decided, and nobody else
// comes back to the job. It is noted on the record until it is done.
func (s *DueSweep) lookAtLeft(ctx context.Context, _ time.Time) (Progress, error) {
	host := s.hosts[0].Record
	host.RunID, host.Labels = host.Left.RunID, host.Left.Labels
	jobs, err := s.f.waitingFor(ctx, host)
	if err != nil {
		return again, err
	}
	s.next = s.provideFor(jobs)
	return again, nil
}

// provideFor has the next of the jobs looked at as if its webhook came now.
func (s *DueSweep) provideFor(jobs []lifecycle.Job) func(context.Context, time.Time) (Progress, error) {
	return func(ctx context.Context, now time.Time) (Progress, error) {
		if len(jobs) == 0 {
			return s.lookedAtLeft(ctx)
		}
		j, host := jobs[0], s.hosts[0].Record
		err := s.f.TakeWebhook(ctx, lifecycle.Webhook{
			DeliveryID: fmt.Sprintf("ended-%s-%d-%d", host.InstanceID, host.Assignment, j.ID), Action: lifecycle.StatusQueued,
			Job: &lifecycle.WorkflowJob{
				ID: j.ID, Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, Labels: j.Labels,
				Status: lifecycle.StatusQueued, QueuedAt: j.QueuedAt,
			},
		}, now)
		if err != nil && !errors.Is(err, ErrNotOurs) && !errors.Is(err, lifecycle.ErrExists) {
			return again, err
		}
		s.next = s.provideFor(jobs[1:])
		return again, nil
	}
}

// lookedAtLeft notes that nothing is left to be looked at. The machine follows.
func (s *DueSweep) lookedAtLeft(ctx context.Context) (Progress, error) {
	r := s.hosts[0].Record
	r.Left = nil
	stored, err := s.f.store.UpdateInstance(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrLost): // another replica did it: the next sweep goes on
	case err != nil:
		return again, fmt.Errorf("write host %s: %w", r.InstanceID, err)
	default:
		s.ending = append(s.ending, stored)
	}
	s.hosts, s.next = s.hosts[1:], s.host
	return again, nil
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// workEvery is how often jobs are looked for whose workers went silent: a tenth
// of the time that makes them so.
const workEvery = model.JobSilence / 10

// WorkSweep ends the jobs of services whose workers went silent, or queues them
// once more, and ends those that no worker took in time. Its cost grows with what
// is due.
type WorkSweep struct {
	op.Stages
	f    *Fleet
	due  []model.Job
	page lifecycle.PageOf
	last bool
}

// NewWorkSweep begins a sweep.
func (f *Fleet) NewWorkSweep() *WorkSweep {
	s := &WorkSweep{f: f, Stages: f.ops.Stages("work"), page: lifecycle.PageOf{Limit: dueAtOnce}}
	s.Next = s.list
	return s
}

func (s *WorkSweep) list(ctx context.Context, now time.Time) (op.Progress, error) {
	if s.f.workers == nil || s.last {
		return op.Done, nil
	}
	page, err := s.f.workers.Store.DueWork(ctx, now, s.page)
	if err != nil {
		return op.Again, fmt.Errorf("list due jobs of services: %w", err)
	}
	s.due, s.page.After, s.last = page.Items, page.Next, page.Next == ""
	s.Next = s.job
	return op.Again, nil
}

func (s *WorkSweep) job(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.due) == 0 {
		s.Next = s.list
		return op.Again, nil
	}
	j := s.due[0]
	s.due = s.due[1:]
	next := j.CheckDeadline(s.f.workers.Services[j.Service], now)
	decision := s.decision(j, next)
	s.Events.Collect("", decision.Action, decision.Reason)
	if s.Events.Dry {
		return op.Again, nil
	}
	stored, err := s.f.workers.Store.UpdateWork(ctx, next)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return op.Again, nil // its worker said something
	case err != nil:
		if err = fmt.Errorf("write job %s of service %s: %w", j.ID, j.Service, err); !s.Past(ctx, err) {
			return op.Again, err
		}
		return op.Again, nil
	case decision.Action == lifecycle.ActionKeep:
		return op.Again, nil
	}
	s.Events.RecordEffect(decision)
	if j.WorkerID != "" {
		s.f.workLeft(ctx, j)
	}
	if stored.State == model.JobWaiting {
		s.f.workQueued(j.Service)
	}
	return op.Again, nil
}

// decision is what becomes of a job, which is due, and why.
func (s *WorkSweep) decision(j, next model.Job) lifecycle.Event {
	e := lifecycle.Event{At: s.Events.Now, Action: lifecycle.ActionKeep}
	why := next.Reason + "; it awaits " + next.Awaited(s.f.workers.Services[j.Service])
	switch {
	case next.State.Ended():
		e.Action, why = lifecycle.ActionFailJob, next.Reason
	case next.State != j.State:
		e.Action, why = lifecycle.ActionRequeueJob, next.Reason
	}
	e.Reason = fmt.Sprintf("job %s of service %s: %s", j.ID, j.Service, why)
	return e
}

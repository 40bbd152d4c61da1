package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// workEvery is how often jobs are looked for whose workers went silent: a tenth
// of the time that makes them so.
const workEvery = lifecycle.WorkSilence / 10

// WorkSweep ends the jobs of services whose workers went silent, or queues them
// once more. Its cost grows with what is due.
type WorkSweep struct {
	course
	f    *Fleet
	due  []lifecycle.WorkJob
	page lifecycle.PageOf
	last bool
}

// NewWorkSweep begins a sweep.
func (f *Fleet) NewWorkSweep() *WorkSweep {
	s := &WorkSweep{f: f, course: course{journal: journal{f: f}}, page: lifecycle.PageOf{Limit: dueAtOnce}}
	s.next = s.list
	return s
}

func (s *WorkSweep) list(ctx context.Context, now time.Time) (Progress, error) {
	if s.last {
		return done, nil
	}
	page, err := s.f.workers.Store.DueWork(ctx, now, s.page)
	if err != nil {
		return again, fmt.Errorf("list due jobs of services: %w", err)
	}
	s.due, s.page.After, s.last = page.Items, page.Next, page.Next == ""
	s.next = s.job
	return again, nil
}

func (s *WorkSweep) job(ctx context.Context, now time.Time) (Progress, error) {
	if len(s.due) == 0 {
		s.next = s.list
		return again, nil
	}
	j := s.due[0]
	s.due = s.due[1:]
	next, err := s.f.workers.Store.UpdateWork(ctx, j.Look(s.f.workers.Services[j.Service], now))
	switch {
	case errors.Is(err, lifecycle.ErrLost):
		return again, nil // its worker said something
	case err != nil:
		return again, fmt.Errorf("write job %s of service %s: %w", j.ID, j.Service, err)
	case next.State == lifecycle.WorkRunning:
		return again, nil
	}
	s.f.log.Warn("worker went silent", "service", j.Service, "worker", j.WorkerID, "job", j.ID, "attempt", j.Attempt, "state", next.State, "reason", next.Reason)
	s.f.workLeft(ctx, j)
	if next.State == lifecycle.WorkWaiting {
		s.f.workQueued(j.Service)
	}
	return again, nil
}

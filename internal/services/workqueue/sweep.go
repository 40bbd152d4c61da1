package workqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// SweepInterval is how often the sweep runs: a tenth of the silence that it looks for.
const SweepInterval = model.JobSilence / 10

// sweepPage is how many due jobs the sweep reads at once.
const sweepPage = 100

// Sweep ends the jobs whose workers went silent, or queues them again, and ends those that no worker took in time. Then
// it looks for workers that went offline. Its cost grows with the number of due jobs, and of workers in 24 hours.
type Sweep struct {
	op.Stages
	q    *Queue
	due  []model.Job
	page lifecycle.PageOf
	last bool
	// services are those whose workers are still to be checked, and workers the rest of a page of the first.
	services []string
	workers  []model.Worker
}

// NewSweep begins a sweep.
func (q *Queue) NewSweep() *Sweep {
	s := &Sweep{Stages: q.driver.Stages("work"), q: q, page: lifecycle.PageOf{Limit: sweepPage}}
	s.Next = s.list
	return s
}

func (s *Sweep) list(ctx context.Context, now time.Time) (op.Progress, error) {
	if s.q.Store == nil {
		return op.Done, nil
	}
	if s.last {
		s.page, s.services = lifecycle.PageOf{Limit: sweepPage}, slices.Sorted(maps.Keys(s.q.Services))
		return s.Then(s.listWorkers)
	}
	page, err := s.q.Store.DueWork(ctx, now, s.page)
	if err != nil {
		return op.Again, fmt.Errorf("list due jobs of services: %w", err)
	}
	s.due, s.page.After, s.last = page.Items, page.Next, page.Next == ""
	return s.Then(s.job)
}

func (s *Sweep) job(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.due) == 0 {
		return s.Then(s.list)
	}
	j := s.due[0]
	s.due = s.due[1:]
	next := j.CheckDeadline(s.q.Services[j.Service], now)
	decision := s.decision(j, next)
	s.Events.Collect("", decision.Action, lifecycle.Reason{Code: decision.Code, Text: decision.Reason})
	if s.Events.Dry {
		return op.Again, nil
	}
	var worker model.Worker
	named := false
	if decision.Action != lifecycle.ActionKeep {
		worker, named = s.q.workerOf(ctx, j)
	}
	stored, err := s.q.Store.UpdateWork(ctx, next)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return op.Again, nil // its worker has reported since
	case err != nil:
		if err = fmt.Errorf("write job %s of service %s: %w", j.ID, j.Service, err); !s.Past(ctx, err) {
			return op.Again, err
		}
		return op.Again, nil
	case decision.Action == lifecycle.ActionKeep:
		return op.Again, nil
	}
	s.Events.RecordEffect(decision)
	s.q.clearWorker(ctx, worker, named)
	if stored.State == model.JobWaiting {
		s.q.Queued(j.Service)
	}
	return op.Again, nil
}

// decision describes what becomes of a due job, and why.
func (s *Sweep) decision(j, next model.Job) lifecycle.Event {
	e := lifecycle.Event{At: s.Events.Now, Action: lifecycle.ActionKeep, Code: lifecycle.ReasonWorkerBusy}
	why := next.Reason + "; it awaits " + s.q.Awaited(next)
	switch {
	case next.State.Ended():
		e.Action, e.Code, why = lifecycle.ActionFailJob, lifecycle.ReasonWorkerSilent, next.Reason
		if j.State == model.JobWaiting {
			e.Code = lifecycle.ReasonNotTaken
		}
	case next.State != j.State:
		e.Action, e.Code, why = lifecycle.ActionRequeueJob, lifecycle.ReasonWorkerSilent, next.Reason
	}
	e.Reason = fmt.Sprintf("job %s of service %s: %s", j.ID, j.Service, why)
	return e
}

func (s *Sweep) listWorkers(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.services) == 0 {
		return op.Done, nil
	}
	page, err := s.q.Store.Workers(ctx, s.services[0], s.page)
	if err != nil {
		return op.Again, fmt.Errorf("list workers of service %s: %w", s.services[0], err)
	}
	if s.workers, s.page.After = page.Items, page.Next; page.Next == "" {
		s.services = s.services[1:]
	}
	return s.Then(s.worker)
}

// worker marks a worker that went offline, so that each time is recorded once, by whichever replica sweeps.
func (s *Sweep) worker(ctx context.Context, now time.Time) (op.Progress, error) {
	var gone model.Worker
	for found := false; !found; s.workers = s.workers[1:] {
		if len(s.workers) == 0 {
			return s.Then(s.listWorkers)
		}
		gone, found = s.workers[0].GoneOffline(now)
	}
	e := lifecycle.Event{At: s.Events.Now, Action: lifecycle.ActionWorkerOffline, Code: lifecycle.ReasonWorkerSilent, Reason: gone.OfflineReason()}
	s.Events.Collect("", e.Action, lifecycle.Reason{Code: e.Code, Text: e.Reason})
	if s.Events.Dry {
		return op.Again, nil
	}
	_, err := s.q.Store.UpdateWorker(ctx, gone)
	switch {
	case errors.Is(err, lifecycle.ErrConflict): // it has sent a heartbeat since
	case err != nil:
		if err = fmt.Errorf("write worker %s of service %s: %w", gone.ID, gone.Service, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	default:
		s.Events.RecordEffect(e)
	}
	return op.Again, nil
}

// maxCountedWorkers is how many workers of a service are counted: one page of rows of some hundred bytes each.
const maxCountedWorkers = 1000

// WorkerCount is how many workers a service has.
type WorkerCount struct {
	// Versions are in order.
	Versions []VersionCount
	// More: there are more workers, which were not counted.
	More bool
}

// VersionCount is how many workers have a version, as they reported it last.
type VersionCount struct {
	Version         string
	Online, Offline int
}

// Online is how many workers have a recent heartbeat.
func (c WorkerCount) Online() (n int) {
	for _, v := range c.Versions {
		n += v.Online
	}
	return n
}

// Offline is how many workers of the last 24 hours have no recent heartbeat.
func (c WorkerCount) Offline() (n int) {
	for _, v := range c.Versions {
		n += v.Offline
	}
	return n
}

// CountWorkers counts the workers of a service; nil: the service has no queue here.
func (q *Queue) CountWorkers(ctx context.Context, service string, now time.Time) (*WorkerCount, error) {
	if _, err := q.policy(service); err != nil {
		return nil, nil
	}
	page, err := q.Store.Workers(ctx, service, lifecycle.PageOf{Limit: maxCountedWorkers})
	if err != nil {
		return nil, fmt.Errorf("count workers of service %s: %w", service, err)
	}
	count := &WorkerCount{More: page.Next != ""}
	for _, w := range page.Items {
		i, found := slices.BinarySearchFunc(count.Versions, w.WorkerVersion, func(v VersionCount, version string) int { return cmp.Compare(v.Version, version) })
		if !found {
			count.Versions = slices.Insert(count.Versions, i, VersionCount{Version: w.WorkerVersion})
		}
		if w.Online(now) {
			count.Versions[i].Online++
		} else {
			count.Versions[i].Offline++
		}
	}
	return count, nil
}

// Backlog counts the jobs of services that have their jobs here. It is their services.Backlog.
type Backlog struct {
	Store Store
	// AtMost is how many jobs of each kind are counted.
	AtMost int
}

// Count returns how many jobs wait and run in the queue of a service.
func (b Backlog) Count(ctx context.Context, service string) (model.Backlog, error) {
	n, err := b.Store.CountWork(ctx, service, b.AtMost)
	if err != nil {
		return model.Backlog{}, fmt.Errorf("count the jobs of service %s: %w", service, err)
	}
	return model.Backlog{Queued: &n.Waiting, Busy: &n.Running, More: n.Waiting >= b.AtMost}, nil
}

package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// workKey is the key of a job or a worker of a service.
type workKey struct{ service, id string }

// CreateWork writes a new job with version 1: ErrExists if the service has one
// of its id.
func (s *Store) CreateWork(ctx context.Context, j model.Job) error {
	what := fmt.Sprintf("create job %s of service %s", j.ID, j.Service)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	key := workKey{j.Service, j.ID}
	if _, ok := s.work[key]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	j.Version = 1
	s.work[key] = new(row.WorkJob(j))
	return nil
}

// UpdateWork replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateWork(ctx context.Context, j model.Job) (model.Job, error) {
	what := fmt.Sprintf("update job %s of service %s", j.ID, j.Service)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return model.Job{}, err
	}
	defer end()
	key := workKey{j.Service, j.ID}
	if old, ok := s.work[key]; !ok || old.Version != j.Version {
		return model.Job{}, lost(what)
	}
	j.Version++
	s.work[key] = new(row.WorkJob(j))
	return row.WorkJob(j), nil
}

// Work reads one job: ErrNotFound.
func (s *Store) Work(ctx context.Context, service, id string) (model.Job, error) {
	what := fmt.Sprintf("read job %s of service %s", id, service)
	end, err := s.begin(ctx, what)
	if err != nil {
		return model.Job{}, err
	}
	defer end()
	j, ok := s.work[workKey{service, id}]
	if !ok {
		return model.Job{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.WorkJob(*j), nil
}

// WaitingWork lists the ids of at most limit waiting jobs of a service, the
// oldest first.
func (s *Store) WaitingWork(ctx context.Context, service string, limit int) ([]string, error) {
	page, err := s.listWork(ctx, workByAge, lifecycle.PageOf{Limit: limit}, func(j *model.Job) bool {
		return j.Service == service && j.State == model.JobWaiting
	})
	var ids []string
	for _, j := range page.Items {
		ids = append(ids, j.ID)
	}
	return ids, err
}

// CountWork counts the jobs of a service that wait and run, at most so many of
// each.
func (s *Store) CountWork(ctx context.Context, service string, atMost int) (n model.JobCount, err error) {
	end, err := s.begin(ctx, "count jobs of service "+service)
	if err != nil {
		return n, err
	}
	defer end()
	for key, j := range s.work {
		switch {
		case key.service != service:
		case j.State == model.JobWaiting:
			n.Waiting++
		case j.State == model.JobRunning:
			n.Running++
		}
	}
	return model.JobCount{Waiting: min(n.Waiting, atMost), Running: min(n.Running, atMost)}, nil
}

// ListWork lists the jobs of a service that are in one of the states, the oldest
// first.
func (s *Store) ListWork(
	ctx context.Context, service string, states []model.JobState, of lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	return s.listWork(ctx, workByState, of, func(j *model.Job) bool {
		return j.Service == service && slices.Contains(states, j.State)
	})
}

// DueWork lists the jobs with dueAt at or before now, the longest due first.
func (s *Store) DueWork(ctx context.Context, now time.Time, of lifecycle.PageOf) (lifecycle.Page[model.Job], error) {
	return s.listWork(ctx, workByDue, of, func(j *model.Job) bool { return expired(j.DueAt, now) })
}

func (s *Store) listWork(
	ctx context.Context, x index[model.Job], of lifecycle.PageOf, in func(*model.Job) bool,
) (lifecycle.Page[model.Job], error) {
	end, err := s.begin(ctx, "list "+x.name)
	if err != nil {
		return lifecycle.Page[model.Job]{}, err
	}
	defer end()
	return x.page(maps.Values(s.work), in, of)
}

// Worker reads one worker: ErrNotFound.
func (s *Store) Worker(ctx context.Context, service, id string) (model.Worker, error) {
	what := fmt.Sprintf("read worker %s of service %s", id, service)
	end, err := s.begin(ctx, what)
	if err != nil {
		return model.Worker{}, err
	}
	defer end()
	w, ok := s.workers[workKey{service, id}]
	if !ok {
		return model.Worker{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.Worker(*w), nil
}

// UpdateWorker replaces the worker whose stored version is w.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateWorker(ctx context.Context, w model.Worker) (model.Worker, error) {
	what := fmt.Sprintf("update worker %s of service %s", w.ID, w.Service)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return model.Worker{}, err
	}
	defer end()
	key := workKey{w.Service, w.ID}
	var version int64
	if old, ok := s.workers[key]; ok {
		version = old.Version
	}
	if version != w.Version {
		return model.Worker{}, lost(what)
	}
	w.Version++
	s.workers[key] = new(row.Worker(w))
	return row.Worker(w), nil
}

// Workers lists the workers of a service, by id.
func (s *Store) Workers(ctx context.Context, service string, of lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	end, err := s.begin(ctx, "list "+workersByID.name)
	if err != nil {
		return lifecycle.Page[model.Worker]{}, err
	}
	defer end()
	return workersByID.page(maps.Values(s.workers), func(w *model.Worker) bool { return w.Service == service }, of)
}

// workIn are the jobs and workers of a table in a fixed order.
func workIn[T any](table map[workKey]T) []workKey {
	return slices.SortedFunc(maps.Keys(table), func(a, b workKey) int {
		return slices.Compare([]string{a.service, a.id}, []string{b.service, b.id})
	})
}

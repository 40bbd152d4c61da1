package store

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// The indexes of the services' jobs and workers.
var (
	WorkByState = &Index{Name: "jobs of a service", By: []string{"service", "state"}, Order: "created_at", Prefix: "work/"}
	WorkByDue   = &Index{Name: "jobs of services by due", Order: Due, Prefix: "work-"}
	WorkersByID = &Index{Name: "workers", By: []string{"service"}, Prefix: "workers/"}
)

// Work are the jobs in the queues of services. The log is compressed: a row is written whole with every piece of
// it, and logs are much alike from line to line.
var Work = define(Spec[model.Job]{
	Name:       "work",
	Label:      func(key Key) string { return fmt.Sprintf("job %s of service %s", key[1], key[0]) },
	Key:        func(j *model.Job) Key { return Key{j.Service, j.ID} },
	KeyColumns: []string{"service", "id"},
	Version:    func(j *model.Job) *int64 { return &j.Version },
	Expires:    func(j *model.Job) time.Time { return j.ExpiresAt },
	Columns: []Column[model.Job]{
		{"state", func(j *model.Job) Value { return TextValue(string(j.State)) }},
		{"created_at", func(j *model.Job) Value { return TimeValue(j.CreatedAt) }},
		{Due, func(j *model.Job) Value { return TimeIf(!j.DueAt.IsZero(), j.DueAt) }},
	},
	Indexes: []*Index{WorkByState, WorkByDue},
	SQL:     Table{Name: "work"}, Dynamo: Table{Name: "jobs", Prefix: "work/"},
	Large: []Large[model.Job]{{"logTail", func(j *model.Job) any { return &j.LogTail }, model.MaxLogTail}},
})

// Workers are the workers of services.
var Workers = define(Spec[model.Worker]{
	Name:       "worker",
	Label:      func(key Key) string { return fmt.Sprintf("worker %s of service %s", key[1], key[0]) },
	Key:        func(w *model.Worker) Key { return Key{w.Service, w.ID} },
	KeyColumns: []string{"service", "id"},
	Version:    func(w *model.Worker) *int64 { return &w.Version },
	Upsert:     true,
	Expires:    func(w *model.Worker) time.Time { return w.ExpiresAt },
	Indexes:    []*Index{WorkersByID},
	SQL:        Table{Name: "workers"}, Dynamo: Table{Name: "jobs", Prefix: "worker/"},
})

// CreateWork writes a new job: ErrExists if the service has one of its id.
func (s Store) CreateWork(ctx context.Context, j model.Job) error { return create(ctx, s, Work, j) }

// UpdateWork replaces the job whose stored version is j.Version: else ErrConflict.
func (s Store) UpdateWork(ctx context.Context, j model.Job) (model.Job, error) {
	return update(ctx, s, Work, j)
}

// Work reads one job, consistently: ErrNotFound.
func (s Store) Work(ctx context.Context, service, id string) (model.Job, error) {
	return get(ctx, s, Work, Key{service, id})
}

// WaitingWork lists the ids of at most limit waiting jobs of a service, the oldest first, without reading the jobs.
func (s Store) WaitingWork(ctx context.Context, service string, limit int) (_ []string, err error) {
	q := Query{
		Op: "waiting_work", Index: WorkByState,
		Partitions: workPartitions(service, model.JobWaiting), Page: lifecycle.PageOf{Limit: limit},
	}
	defer s.observed("", q.Op, &err)
	keys, err := s.backend.Keys(ctx, q)
	var ids []string
	for _, key := range keys {
		ids = append(ids, key[1])
	}
	return ids, err
}

// CountWork counts the jobs of a service that wait and run, up to atMost of each.
func (s Store) CountWork(ctx context.Context, service string, atMost int) (_ model.JobCount, err error) {
	q := Query{Op: "count_work", Index: WorkByState, Partitions: workPartitions(service, model.JobWaiting, model.JobRunning)}
	defer s.observed("", q.Op, &err)
	counts, err := s.backend.Count(ctx, q, atMost)
	if err != nil {
		return model.JobCount{}, err
	}
	return model.JobCount{Waiting: counts[0], Running: counts[1]}, nil
}

// ListWork lists the jobs of a service that are in one of the states, the oldest first.
func (s Store) ListWork(
	ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	return list(ctx, s, Work, Query{
		Op: "list_work", Index: WorkByState, Partitions: workPartitions(service, states...), Stale: true, Page: page,
	})
}

func workPartitions(service string, states ...model.JobState) [][]string {
	var partitions [][]string
	for _, state := range states {
		partitions = append(partitions, []string{service, string(state)})
	}
	return partitions
}

// DueWork lists the jobs that were due at now or before, the longest due first.
func (s Store) DueWork(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[model.Job], error) {
	return listDue(ctx, s, Work, "due_work", WorkByDue, now, page)
}

// Worker reads one worker, consistently: ErrNotFound.
func (s Store) Worker(ctx context.Context, service, id string) (model.Worker, error) {
	return get(ctx, s, Workers, Key{service, id})
}

// UpdateWorker replaces the worker whose stored version is w.Version (0: there is none): else ErrConflict.
func (s Store) UpdateWorker(ctx context.Context, w model.Worker) (model.Worker, error) {
	return update(ctx, s, Workers, w)
}

// Workers lists the workers of a service, by id.
func (s Store) Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	return list(ctx, s, Workers, Query{
		Op: "workers", Index: WorkersByID, Partitions: [][]string{{service}}, Stale: true, Page: page,
	})
}

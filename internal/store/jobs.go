package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The indexes of jobs: a job is by run until it is done, and by pool while it waits for a host of it.
var (
	JobsByRun  = &Index{Name: "open jobs of a run", By: []string{"repository", "open_run"}}
	JobsByPool = &Index{Name: "jobs by pool", By: []string{"pool"}, Order: "waiting_since"}
	JobsByDue  = &Index{Name: "jobs by due", Order: Due, Prefix: "job-"}
)

// Jobs are the jobs of workflows as GitHub described them.
var Jobs = define(Spec[lifecycle.Job]{
	Name:       "job",
	Label:      func(key Key) string { return "job " + cmp.Or(strings.TrimLeft(key[0], "0"), "0") },
	Key:        func(j *lifecycle.Job) Key { return jobKey(j.ID) },
	KeyColumns: []string{"id"}, NumberKey: true,
	Version: func(j *lifecycle.Job) *int64 { return &j.Version },
	Expires: func(j *lifecycle.Job) time.Time { return j.ExpiresAt },
	Columns: []Column[lifecycle.Job]{
		{"repository", func(j *lifecycle.Job) Value { return TextValue(j.Repository) }},
		{"open_run", func(j *lifecycle.Job) Value { return TextIf(j.State != lifecycle.JobDone, j.RunID) }},
		{"pool", func(j *lifecycle.Job) Value { return TextValue(j.Pool) }},
		{"waiting_since", func(j *lifecycle.Job) Value {
			return TimeIf(j.State == lifecycle.JobWaiting && j.Pool != "", j.QueuedAt)
		}},
		{Due, func(j *lifecycle.Job) Value { return TimeIf(!j.DueAt.IsZero(), j.DueAt) }},
	},
	Indexes: []*Index{JobsByRun, JobsByPool, JobsByDue},
	SQL:     Table{Name: "jobs"}, Dynamo: Table{Name: "jobs", Prefix: "job/"},
})

// jobKey has the id in a fixed width, so that keys sort as ids do. Ids are positive.
func jobKey(id int64) Key { return Key{fmt.Sprintf("%019d", id)} }

// CreateJob writes a new job: ErrExists if its id is taken.
func (s Store) CreateJob(ctx context.Context, j lifecycle.Job) error { return create(ctx, s, Jobs, j) }

// UpdateJob replaces the job whose stored version is j.Version: else ErrConflict.
func (s Store) UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error) {
	return update(ctx, s, Jobs, j)
}

// Job reads one job, consistently: ErrNotFound.
func (s Store) Job(ctx context.Context, id int64) (lifecycle.Job, error) {
	return get(ctx, s, Jobs, jobKey(id))
}

// JobsOf reads jobs by their ids, in any order. Those that are not there are left out, and it may lag.
func (s Store) JobsOf(ctx context.Context, ids []int64) ([]lifecycle.Job, error) {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i] = jobKey(id)
	}
	return getMany(ctx, s, "jobs_of", Jobs, keys)
}

// OpenJobsOfRun lists the jobs of a run that are not done, by id.
func (s Store) OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error) {
	return listAll(ctx, s, Jobs, Query{Op: "open_jobs_of_run", Index: JobsByRun, Partitions: [][]string{{repository, runID}}})
}

// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before.
func (s Store) WaitingJobs(ctx context.Context, pool string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
	return list(ctx, s, Jobs, Query{Op: "waiting_jobs", Index: JobsByPool, Partitions: [][]string{{pool}}, Page: page})
}

// DueJobs lists the jobs that were due at now or before, the longest due first.
func (s Store) DueJobs(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
	return listDue(ctx, s, Jobs, "due_jobs", JobsByDue, now, page)
}

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) (err error) {
	defer s.observed("", "see_once", &err)
	return s.backend.SeeOnce(ctx, kind, id, until)
}

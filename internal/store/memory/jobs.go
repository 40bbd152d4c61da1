package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// CreateJob writes a new job with version 1: ErrExists if its id is taken.
func (s *Store) CreateJob(ctx context.Context, j lifecycle.Job) error {
	what := fmt.Sprintf("create job %d", j.ID)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if _, ok := s.jobs[j.ID]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	j.Version = 1
	s.jobs[j.ID] = new(row.Job(j))
	return nil
}

// UpdateJob replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error) {
	what := fmt.Sprintf("update job %d", j.ID)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Job{}, err
	}
	defer end()
	if old, ok := s.jobs[j.ID]; !ok || old.Version != j.Version {
		return lifecycle.Job{}, lost(what)
	}
	j.Version++
	s.jobs[j.ID] = new(row.Job(j))
	return row.Job(j), nil
}

// Job reads one job: ErrNotFound.
func (s *Store) Job(ctx context.Context, id int64) (lifecycle.Job, error) {
	what := fmt.Sprintf("read job %d", id)
	end, err := s.begin(ctx, what)
	if err != nil {
		return lifecycle.Job{}, err
	}
	defer end()
	j, ok := s.jobs[id]
	if !ok {
		return lifecycle.Job{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.Job(*j), nil
}

// OpenJobsOfRun lists the jobs of a run that are not done, by id.
func (s *Store) OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error) {
	end, err := s.begin(ctx, "list open jobs of run "+runID)
	if err != nil {
		return nil, err
	}
	defer end()
	var open []lifecycle.Job
	for _, j := range s.jobs {
		if j.Repository == repository && j.RunID == runID && j.State != lifecycle.JobDone {
			open = append(open, row.Job(*j))
		}
	}
	slices.SortFunc(open, func(a, b lifecycle.Job) int { return cmp.Compare(a.ID, b.ID) })
	return open, nil
}

// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before.
func (s *Store) WaitingJobs(ctx context.Context, pool string, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
	return s.listJobs(ctx, jobsByPool, of, func(j *lifecycle.Job) bool {
		return pool != "" && j.Pool == pool && j.State == lifecycle.JobWaiting
	})
}

// DueJobs lists the jobs with dueAt at or before now, the longest due first.
func (s *Store) DueJobs(ctx context.Context, now time.Time, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
	return s.listJobs(ctx, jobsByDue, of, func(j *lifecycle.Job) bool { return expired(j.DueAt, now) })
}

func (s *Store) listJobs(ctx context.Context, x index[lifecycle.Job], of lifecycle.PageOf, in func(*lifecycle.Job) bool) (lifecycle.Page[lifecycle.Job], error) {
	end, err := s.begin(ctx, "list "+x.name)
	if err != nil {
		return lifecycle.Page[lifecycle.Job]{}, err
	}
	defer end()
	return x.page(maps.Values(s.jobs), in, of)
}

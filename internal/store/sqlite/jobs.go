package sqlite

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/token"
)

type (
	job     = lifecycle.Job
	jobPage = lifecycle.Page[lifecycle.Job]
)

const (
	insertJob = `INSERT INTO jobs (doc, version, repository, open_run, pool, waiting_since, due_at, expires_at, id)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING`
	updateJob = `UPDATE jobs
		SET doc = ?1, version = ?2, repository = ?3, open_run = ?4, pool = ?5, waiting_since = ?6, due_at = ?7, expires_at = ?8
		WHERE id = ?9 AND version = ?2 - 1`
	selectJob         = `SELECT doc FROM jobs WHERE id = ?1`
	selectOpenJobs    = `SELECT id, doc FROM jobs WHERE repository = ?1 AND open_run = ?2 ORDER BY id`
	selectWaitingJobs = `SELECT id, doc FROM jobs
		WHERE pool = ?1 AND waiting_since IS NOT NULL AND (waiting_since, id) > (?2, ?3)
		ORDER BY waiting_since, id LIMIT ?4`
	selectDueJobs = `SELECT id, doc FROM jobs
		WHERE due_at <= ?1 AND (due_at, id) > (?2, ?3) ORDER BY due_at, id LIMIT ?4`
)

// jobRow is the job as the columns of its row, in the order of the statements'
// parameters.
func jobRow(what string, j job) ([]any, error) {
	doc, err := document(what, j)
	var openRun, waitingSince any
	if j.State != lifecycle.JobDone {
		openRun = j.RunID
	}
	if j.State == lifecycle.JobWaiting && j.Pool != "" {
		waitingSince = db.Nanos(j.QueuedAt)
	}
	return []any{doc, j.Version, j.Repository, openRun, j.Pool, waitingSince, db.Time(j.DueAt), db.Time(j.ExpiresAt), j.ID}, err
}

// CreateJob writes a new job with version 1: ErrExists if its id is taken.
func (s *Store) CreateJob(ctx context.Context, j job) error {
	what := fmt.Sprintf("create job %d", j.ID)
	j.Version = 1
	columns, err := jobRow(what, row.Job(j))
	if err != nil {
		return err
	}
	return s.change(ctx, what, lifecycle.ErrExists, insertJob, columns...)
}

// UpdateJob replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateJob(ctx context.Context, j job) (job, error) {
	what := fmt.Sprintf("update job %d", j.ID)
	j = row.Job(j)
	j.Version++
	columns, err := jobRow(what, j)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrConflict, updateJob, columns...)
	}
	if err != nil {
		return job{}, err
	}
	return j, nil
}

// Job reads one job: ErrNotFound.
func (s *Store) Job(ctx context.Context, id int64) (j job, err error) {
	what := fmt.Sprintf("read job %d", id)
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		j, err = one[job](c, what, selectJob, id)
		return err
	})
	return j, err
}

// OpenJobsOfRun lists the jobs of a run that are not done, by id.
func (s *Store) OpenJobsOfRun(ctx context.Context, repository, runID string) (open []job, err error) {
	what := "list open jobs of run " + runID
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		open, _, err = sound[job](s, c, what, selectOpenJobs, repository, runID)
		return err
	})
	return open, err
}

// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before.
func (s *Store) WaitingJobs(ctx context.Context, pool string, of lifecycle.PageOf) (jobPage, error) {
	return s.listJobs(ctx, jobsByPool, of, selectWaitingJobs, pool)
}

// DueJobs lists the jobs with dueAt at or before now, the longest due first. It
// reads what is due and nothing else.
func (s *Store) DueJobs(ctx context.Context, now time.Time, of lifecycle.PageOf) (jobPage, error) {
	return s.listJobs(ctx, jobsByDue, of, selectDueJobs, db.Nanos(now))
}

// listJobs runs a query whose first parameter is given, and whose others are the
// place where the page begins and its size.
func (s *Store) listJobs(ctx context.Context, x index[job], of lifecycle.PageOf, query string, first any) (page jobPage, err error) {
	after, id, err := afterJob(x, of)
	if err != nil {
		return page, err
	}
	what := "list " + x.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		jobs, read, err := sound[job](s, c, what, query, first, after.number, id, oneMore(of))
		if err == nil {
			page, err = x.pageOfSound(jobs, read, of)
		}
		return err
	})
	return page, err
}

// jobKey is a job's place by a time.
func jobKey(at time.Time, j job) key { return key{db.Nanos(at), []string{strconv.FormatInt(j.ID, 10)}} }

// afterJob is the place where a page begins, with the id in it as a number.
func afterJob(x index[job], of lifecycle.PageOf) (key, int64, error) {
	after, err := x.after(of)
	if err != nil || of.After == "" {
		return after, math.MinInt64, err
	}
	id, err := strconv.ParseInt(after.texts[0], 10, 64)
	if err != nil {
		return after, 0, token.Bad(x.name)
	}
	return after, id, nil
}

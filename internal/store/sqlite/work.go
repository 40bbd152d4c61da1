package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

type (
	workJob  = model.Job
	workPage = lifecycle.Page[model.Job]
)

const (
	insertWork = `INSERT INTO work (doc, version, state, created_at, due_at, expires_at, service, id)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING`
	updateWork = `UPDATE work SET doc = ?1, version = ?2, state = ?3, created_at = ?4, due_at = ?5, expires_at = ?6
		WHERE service = ?7 AND id = ?8 AND version = ?2 - 1`
	selectWork        = `SELECT doc FROM work WHERE service = ?1 AND id = ?2`
	selectWaitingWork = `SELECT id FROM work WHERE service = ?1 AND state = 'waiting' ORDER BY created_at, id LIMIT ?2`
	countWork         = `SELECT 1 FROM work WHERE service = ?1 AND state = ?2 LIMIT ?3`
	selectDueWork     = `SELECT id, doc FROM work
		WHERE due_at <= ?1 AND (due_at, service, id) > (?2, ?3, ?4) ORDER BY due_at, service, id LIMIT ?5`
	// Merged by SQLite, row by row: each state is in order by itself. One that is
	// NULL has no rows.
	selectWorkByState = `
		SELECT id, doc, created_at FROM work WHERE service = ?1 AND state = ?5 AND (created_at, id) > (?2, ?3) UNION ALL
		SELECT id, doc, created_at FROM work WHERE service = ?1 AND state = ?6 AND (created_at, id) > (?2, ?3) UNION ALL
		SELECT id, doc, created_at FROM work WHERE service = ?1 AND state = ?7 AND (created_at, id) > (?2, ?3) UNION ALL
		SELECT id, doc, created_at FROM work WHERE service = ?1 AND state = ?8 AND (created_at, id) > (?2, ?3)
		ORDER BY created_at, id LIMIT ?4`
)

// workRow is the job as the columns of its row, in the order of the statements'
// parameters.
func workRow(what string, j workJob) ([]any, error) {
	doc, err := document(what, j)
	return []any{doc, j.Version, string(j.State), db.Nanos(j.CreatedAt), db.Time(j.DueAt), db.Time(j.ExpiresAt), j.Service, j.ID}, err
}

// CreateWork writes a new job with version 1: ErrExists if the service has one
// of its id.
func (s *Store) CreateWork(ctx context.Context, j workJob) error {
	what := fmt.Sprintf("create job %s of service %s", j.ID, j.Service)
	j.Version = 1
	columns, err := workRow(what, row.WorkJob(j))
	if err != nil {
		return err
	}
	return s.change(ctx, what, lifecycle.ErrExists, insertWork, columns...)
}

// UpdateWork replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateWork(ctx context.Context, j workJob) (workJob, error) {
	what := fmt.Sprintf("update job %s of service %s", j.ID, j.Service)
	j = row.WorkJob(j)
	j.Version++
	columns, err := workRow(what, j)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrConflict, updateWork, columns...)
	}
	if err != nil {
		return workJob{}, err
	}
	return j, nil
}

// Work reads one job: ErrNotFound.
func (s *Store) Work(ctx context.Context, service, id string) (j workJob, err error) {
	what := fmt.Sprintf("read job %s of service %s", id, service)
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		j, err = one[workJob](c, what, selectWork, service, id)
		return err
	})
	return j, err
}

// WaitingWork lists the ids of at most limit waiting jobs of a service, the
// oldest first.
func (s *Store) WaitingWork(ctx context.Context, service string, limit int) (ids []string, err error) {
	what := "list waiting jobs of service " + service
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		return c.Each(selectWaitingWork, []any{service, limit}, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	return ids, err
}

// CountWork counts the jobs of a service that wait and run, at most so many of
// each.
func (s *Store) CountWork(ctx context.Context, service string, atMost int) (n model.JobCount, err error) {
	what := "count jobs of service " + service
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		for state, count := range map[model.JobState]*int{model.JobWaiting: &n.Waiting, model.JobRunning: &n.Running} {
			err := c.Each(countWork, []any{service, string(state), atMost}, func(*sql.Rows) error { *count++; return nil })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// ListWork lists the jobs of a service that are in one of the states, the oldest
// first.
func (s *Store) ListWork(ctx context.Context, service string, states []model.JobState, of lifecycle.PageOf) (page workPage, err error) {
	after, err := workByState.after(of)
	if err != nil {
		return page, err
	}
	what := "list " + workByState.name
	args := []any{service, after.number, after.texts[0], oneMore(of)}
	for _, state := range model.JobStates {
		asked := sql.NullString{String: string(state), Valid: slices.Contains(states, state)}
		args = append(args, asked)
	}
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		found, read, err := sound[workJob](s, c, what, selectWorkByState, args...)
		if err == nil {
			page, err = workByState.pageOfSound(found, read, of)
		}
		return err
	})
	return page, err
}

// DueWork lists the jobs with dueAt at or before now, the longest due first. It
// reads what is due and nothing else.
func (s *Store) DueWork(ctx context.Context, now time.Time, of lifecycle.PageOf) (page workPage, err error) {
	after, err := workByDue.after(of)
	if err != nil {
		return page, err
	}
	what := "list " + workByDue.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		due, read, err := sound[workJob](s, c, what, selectDueWork, db.Nanos(now), after.number, after.texts[0], after.texts[1], oneMore(of))
		if err == nil {
			page, err = workByDue.pageOfSound(due, read, of)
		}
		return err
	})
	return page, err
}

package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

type (
	request     = lifecycle.Request
	requestPage = lifecycle.Page[lifecycle.Request]
)

const (
	insertRequest = `INSERT INTO requests (doc, version, due_at, expires_at, repository, run_id, request_id)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING`
	updateRequest = `UPDATE requests SET doc = ?1, version = ?2, due_at = ?3, expires_at = ?4
		WHERE repository = ?5 AND run_id = ?6 AND request_id = ?7 AND version = ?2 - 1`
	selectRequest       = `SELECT doc FROM requests WHERE repository = ?1 AND run_id = ?2 AND request_id = ?3`
	selectRequestsOfRun = `SELECT doc FROM requests WHERE repository = ?1 AND run_id = ?2 ORDER BY request_id`
	selectDueRequests   = `SELECT repository || ' ' || run_id || ' ' || request_id, doc FROM requests
		WHERE due_at <= ?1 AND (due_at, repository, run_id, request_id) > (?2, ?3, ?4, ?5)
		ORDER BY due_at, repository, run_id, request_id LIMIT ?6`
)

// requestRow is the request as the columns of its row, in the order of the
// statements' parameters.
func requestRow(what string, q request) ([]any, error) {
	doc, err := document(what, q)
	return []any{doc, q.Version, db.Time(q.DueAt), db.Time(q.ExpiresAt), q.Repository, q.RunID, q.RequestID}, err
}

// CreateRequest writes a new request with version 1: ErrExists if its id is
// taken in the run.
func (s *Store) CreateRequest(ctx context.Context, q request) error {
	what := "create request " + q.RequestID
	q.Version = 1
	columns, err := requestRow(what, row.Request(q))
	if err != nil {
		return err
	}
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(insertRequest, columns...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
		}
		return err
	})
}

// UpdateRequest replaces the request whose stored version is q.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateRequest(ctx context.Context, q request) (request, error) {
	what := "update request " + q.RequestID
	q = row.Request(q)
	q.Version++
	columns, err := requestRow(what, q)
	if err != nil {
		return request{}, err
	}
	err = s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(updateRequest, columns...)
		if err == nil && n == 0 {
			err = lost(what)
		}
		return err
	})
	if err != nil {
		return request{}, err
	}
	return q, nil
}

// Request reads one request: ErrNotFound.
func (s *Store) Request(ctx context.Context, repository, runID, requestID string) (q request, err error) {
	what := "read request " + requestID
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		q, err = one[request](c, what, selectRequest, repository, runID, requestID)
		return err
	})
	return q, err
}

// RequestsOfRun lists the requests of a run, by request id.
func (s *Store) RequestsOfRun(ctx context.Context, repository, runID string) (requests []request, err error) {
	what := "read requests of run " + runID
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		requests, err = many[request](c, what, selectRequestsOfRun, repository, runID)
		return err
	})
	return requests, err
}

// DueRequests lists the requests with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueRequests(ctx context.Context, now time.Time, of lifecycle.PageOf) (page requestPage, err error) {
	after, err := requestsByDue.after(of)
	if err != nil {
		return page, err
	}
	what := "list " + requestsByDue.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		due, read, err := sound[request](s, c, what, selectDueRequests,
			db.Nanos(now), after.number, after.texts[0], after.texts[1], after.texts[2], oneMore(of))
		if err == nil {
			page, err = requestsByDue.pageOfSound(due, read, of)
		}
		return err
	})
	return page, err
}

package sqlite

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

type (
	worker     = model.Worker
	workerPage = lifecycle.Page[model.Worker]
)

const (
	insertWorker  = `INSERT INTO workers (doc, version, expires_at, service, id) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	updateWorker  = `UPDATE workers SET doc = ?1, version = ?2, expires_at = ?3 WHERE service = ?4 AND id = ?5 AND version = ?2 - 1`
	selectWorker  = `SELECT doc FROM workers WHERE service = ?1 AND id = ?2`
	selectWorkers = `SELECT id, doc FROM workers WHERE service = ?1 AND id > ?2 ORDER BY id LIMIT ?3`
)

// workerRow is the worker as the columns of its row, in the order of the
// statements' parameters.
func workerRow(what string, w worker) ([]any, error) {
	doc, err := document(what, w)
	return []any{doc, w.Version, db.Time(w.ExpiresAt), w.Service, w.ID}, err
}

// Worker reads one worker: ErrNotFound.
func (s *Store) Worker(ctx context.Context, service, id string) (w worker, err error) {
	what := fmt.Sprintf("read worker %s of service %s", id, service)
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		w, err = one[worker](c, what, selectWorker, service, id)
		return err
	})
	return w, err
}

// UpdateWorker replaces the worker whose stored version is w.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateWorker(ctx context.Context, w worker) (worker, error) {
	what := fmt.Sprintf("update worker %s of service %s", w.ID, w.Service)
	query := updateWorker
	if w.Version == 0 {
		query = insertWorker
	}
	w = row.Worker(w)
	w.Version++
	columns, err := workerRow(what, w)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrConflict, query, columns...)
	}
	if err != nil {
		return worker{}, err
	}
	return w, nil
}

// Workers lists the workers of a service, by id.
func (s *Store) Workers(ctx context.Context, service string, of lifecycle.PageOf) (page workerPage, err error) {
	after, err := workersByID.after(of)
	if err != nil {
		return page, err
	}
	what := "list " + workersByID.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		found, read, err := sound[worker](s, c, what, selectWorkers, service, after.texts[0], oneMore(of))
		if err == nil {
			page, err = workersByID.pageOfSound(found, read, of)
		}
		return err
	})
	return page, err
}

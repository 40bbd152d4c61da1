package sqlite

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

const (
	selectTurns = `SELECT doc FROM turns WHERE pool = ?1`
	insertTurns = `INSERT INTO turns (doc, version, pool) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	updateTurns = `UPDATE turns SET doc = ?1, version = ?2 WHERE pool = ?3 AND version = ?2 - 1`
)

// turnsRow is the accounts as the columns of their row, in the order of the
// statements' parameters.
func turnsRow(what string, t lifecycle.Turns) ([]any, error) {
	doc, err := document(what, t)
	return []any{doc, t.Version, t.Pool}, err
}

// Turns reads the accounts of a pool; those of one that has none are empty and
// of version 0.
func (s *Store) Turns(ctx context.Context, pool string) (t lifecycle.Turns, err error) {
	what := "read turns of pool " + pool
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		t, err = one[lifecycle.Turns](c, what, selectTurns, pool)
		return err
	})
	if errors.Is(err, lifecycle.ErrNotFound) {
		return lifecycle.Turns{Pool: pool}, nil
	}
	return t, err
}

// UpdateTurns replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateTurns(ctx context.Context, t lifecycle.Turns) (lifecycle.Turns, error) {
	what := "update turns of pool " + t.Pool
	query := updateTurns
	if t.Version == 0 {
		query = insertTurns
	}
	t = row.Turns(t)
	t.Version++
	columns, err := turnsRow(what, t)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrLost, query, columns...)
	}
	if err != nil {
		return lifecycle.Turns{}, err
	}
	return t, nil
}

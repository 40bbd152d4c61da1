// Package sqlite is the state store of the embedded default: its tables in one SQLite file, which package db opens.
//
// A row is the JSON document of the record, beside the columns that its conditions and indexes need.
package sqlite

import (
	"context"
	"fmt"
	"sync"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Store keeps its rows in a file that it shares with other processes.
type Store struct {
	// Store has the typed methods.
	store.Store

	db *db.DB
	// unsound are the hosts whose unreadable reports were logged, and damaged our own unreadable rows that were.
	unsound, damaged sync.Map
}

var _ store.Backend = (*Store)(nil)

// New returns the store in an open file, which its opener closes.
func New(file *db.DB) *Store {
	s := &Store{db: file}
	s.Store = store.New(s)
	return s
}

// lost is the error of a write whose condition did not hold, which shows in that it changed no row.
func lost(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }

// change runs a statement that changes one row, or none when its condition does
// not hold: that is the error otherwise.
func (s *Store) change(ctx context.Context, what string, otherwise error, query string, args ...any) error {
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(query, args...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", what, otherwise)
		}
		return err
	})
}

// Package sqlite is the state store of the embedded default: the tables of
// docs/design.md#what-is-stored in one SQLite file, which package db opens.
package sqlite

import (
	"fmt"
	"sync"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Store keeps its rows in a file that it shares with other processes.
type Store struct {
	db *db.DB
	// unsound are the hosts whose reports cannot be read, as far as told.
	unsound sync.Map
	// damaged are our own rows that cannot be read, as far as told.
	damaged sync.Map
}

// New returns the store in an open file, which its opener closes.
func New(file *db.DB) *Store { return &Store{db: file} }

// lost is the error of a write whose condition did not hold, which shows in
// that it changed no row.
func lost(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

const (
	selectLease = `SELECT holder, version FROM leases WHERE name = ?1`
	insertLease = `INSERT INTO leases (name, holder, version) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	updateLease = `UPDATE leases SET holder = ?2, version = ?3 WHERE name = ?1 AND version = ?3 - 1`
)

// Lease reads a lease: ErrNotFound if it was never taken.
func (s *Store) Lease(ctx context.Context, name string) (lifecycle.Lease, error) {
	what := "read lease " + name
	l := lifecycle.Lease{Name: name}
	err := s.db.Read(ctx, what, func(c *db.Conn) error {
		err := c.Get(selectLease, []any{name}, &l.Holder, &l.Version)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
		}
		return err
	})
	if err != nil {
		return lifecycle.Lease{}, err
	}
	return l, nil
}

// TakeLease writes the lease if its stored version is still l.Version (0: it
// does not exist) and returns it as stored: else ErrConflict.
func (s *Store) TakeLease(ctx context.Context, l lifecycle.Lease) (lifecycle.Lease, error) {
	what := "take lease " + l.Name
	query := updateLease
	if l.Version == 0 {
		query = insertLease
	}
	l.Version++
	err := s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(query, l.Name, l.Holder, l.Version)
		if err == nil && n == 0 {
			err = lost(what)
		}
		return err
	})
	if err != nil {
		return lifecycle.Lease{}, err
	}
	return l, nil
}

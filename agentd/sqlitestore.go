package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// sqliteStore opens the database on first use. If it cannot be opened, the store counts as
// unavailable, since a job may be running.
type sqliteStore struct {
	path    string
	hostKey string
	db      *db.DB
	view    *sqlite.HostView
}

func (s *sqliteStore) open() error {
	if s.db != nil {
		return nil
	}
	file, err := db.Open(s.path, db.Options{Light: true})
	if err != nil {
		return errors.Join(lifecycle.ErrUnavailable, err)
	}
	s.db, s.view = file, sqlite.New(file).ForHost(s.hostKey)
	return nil
}

// Record implements agent.Store.
func (s *sqliteStore) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	if err := s.open(); err != nil {
		return lifecycle.Record{}, time.Time{}, fmt.Errorf("read record: %w", err)
	}
	return s.view.Record(ctx, consistent)
}

// PutReport implements agent.Store.
func (s *sqliteStore) PutReport(ctx context.Context, p lifecycle.Report) error {
	if err := s.open(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return s.view.PutReport(ctx, p)
}

// Close closes the database, if it is open.
func (s *sqliteStore) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

package sqlite

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

const (
	selectService = `SELECT doc FROM services WHERE name = ?1`
	insertService = `INSERT INTO services (doc, version, name) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	updateService = `UPDATE services SET doc = ?1, version = ?2 WHERE name = ?3 AND version = ?2 - 1`
)

// serviceRow is a service as the columns of its row, in the order of the
// statements' parameters.
func serviceRow(what string, v lifecycle.Service) ([]any, error) {
	doc, err := document(what, v)
	return []any{doc, v.Version, v.Name}, err
}

// Service reads a service; one that nobody wrote has only its name.
func (s *Store) Service(ctx context.Context, name string) (v lifecycle.Service, err error) {
	what := "read service " + name
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		v, err = one[lifecycle.Service](c, what, selectService, name)
		return err
	})
	if errors.Is(err, lifecycle.ErrNotFound) {
		return lifecycle.Service{Name: name}, nil
	}
	return v, err
}

// UpdateService replaces the service whose stored version is v.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateService(ctx context.Context, v lifecycle.Service) (lifecycle.Service, error) {
	what := "update service " + v.Name
	query := updateService
	if v.Version == 0 {
		query = insertService
	}
	v = row.Service(v)
	v.Version++
	columns, err := serviceRow(what, v)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrLost, query, columns...)
	}
	if err != nil {
		return lifecycle.Service{}, err
	}
	return v, nil
}

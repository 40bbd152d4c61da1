package sqlite

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Service reads a service; one that nobody wrote has only its name.
func (s *Store) Service(ctx context.Context, name string) (model.Service, error) {
	return named(ctx, s, services, "read service "+name, name, model.Service{Name: name})
}

// UpdateService replaces the service whose stored version is v.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateService(ctx context.Context, v model.Service) (model.Service, error) {
	v = row.Service(v)
	v.Version++
	return putNamed(ctx, s, services, "update service "+v.Name, v.Name, v.Version, v)
}

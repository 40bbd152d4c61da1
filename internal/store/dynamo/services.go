package dynamo

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// serviceLease is the name in the leases table of a service. It has few rows,
// which one of the replicas writes each minute, as leases are.
func serviceLease(name string) string { return "service/" + name }

// Service reads a service; one that nobody wrote has only its name.
func (s *Store) Service(ctx context.Context, name string) (model.Service, error) {
	v, err := named(ctx, s, "read service "+name, serviceLease(name), model.Service{})
	if err != nil {
		return model.Service{}, err
	}
	v.Name = name
	return row.Service(v), nil
}

// UpdateService replaces the service whose stored version is v.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateService(ctx context.Context, v model.Service) (model.Service, error) {
	v = row.Service(v)
	v.Version++
	if err := s.putNamed(ctx, "update service "+v.Name, serviceLease(v.Name), v.Version, v); err != nil {
		return model.Service{}, err
	}
	return v, nil
}

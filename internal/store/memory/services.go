package memory

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Service reads a service; one that nobody wrote has only its name.
func (s *Store) Service(ctx context.Context, name string) (model.Service, error) {
	end, err := s.begin(ctx, "read service "+name)
	if err != nil {
		return model.Service{}, err
	}
	defer end()
	if stored, ok := s.services[name]; ok {
		return row.Service(stored), nil
	}
	return model.Service{Name: name}, nil
}

// UpdateService replaces the service whose stored version is v.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateService(ctx context.Context, v model.Service) (model.Service, error) {
	what := "update service " + v.Name
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return model.Service{}, err
	}
	defer end()
	if s.services[v.Name].Version != v.Version {
		return model.Service{}, lost(what)
	}
	v.Version++
	s.services[v.Name] = row.Service(v)
	return row.Service(v), nil
}

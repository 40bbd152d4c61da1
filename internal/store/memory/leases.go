package memory

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Lease reads a lease: ErrNotFound if it was never taken.
func (s *Store) Lease(ctx context.Context, name string) (lifecycle.Lease, error) {
	what := "read lease " + name
	end, err := s.begin(ctx, what)
	if err != nil {
		return lifecycle.Lease{}, err
	}
	defer end()
	l, ok := s.leases[name]
	if !ok {
		return lifecycle.Lease{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return l, nil
}

// TakeLease writes the lease if its stored version is still l.Version (0: it
// does not exist) and returns it as stored: else ErrConflict.
func (s *Store) TakeLease(ctx context.Context, l lifecycle.Lease) (lifecycle.Lease, error) {
	what := "take lease " + l.Name
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Lease{}, err
	}
	defer end()
	if s.leases[l.Name].Version != l.Version {
		return lifecycle.Lease{}, lost(what)
	}
	l.Version++
	s.leases[l.Name] = l
	return l, nil
}

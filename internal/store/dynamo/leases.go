package dynamo

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// leaseRow is a lease as it is stored.
type leaseRow struct {
	Name    string `json:"name"`
	Holder  string `json:"holder"`
	Version int64  `json:"version"`
}

// Lease reads a lease: ErrNotFound if nobody ever held it.
func (s *Store) Lease(ctx context.Context, name string) (lifecycle.Lease, error) {
	l, err := readNamed[leaseRow](ctx, s, "read lease "+name, name)
	return lifecycle.Lease(l), err
}

// TakeLease writes the lease if its stored version is still l.Version (0: it
// does not exist) and returns it as stored: else ErrLost.
func (s *Store) TakeLease(ctx context.Context, l lifecycle.Lease) (lifecycle.Lease, error) {
	l.Version++
	if err := s.putNamed(ctx, "take lease "+l.Name, l.Name, l.Version, leaseRow(l)); err != nil {
		return lifecycle.Lease{}, err
	}
	return l, nil
}

package sqlite

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Turns reads the accounts of a pool; those of one that has none are empty and
// of version 0.
func (s *Store) Turns(ctx context.Context, pool string) (lifecycle.Turns, error) {
	return named(ctx, s, turns, "read turns of pool "+pool, pool, lifecycle.Turns{Pool: pool})
}

// UpdateTurns replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateTurns(ctx context.Context, t lifecycle.Turns) (lifecycle.Turns, error) {
	t = row.Turns(t)
	t.Version++
	return putNamed(ctx, s, turns, "update turns of pool "+t.Pool, t.Pool, t.Version, t)
}

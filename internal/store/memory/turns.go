package memory

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Turns reads the accounts of a pool; those of one that has none are empty and
// of version 0.
func (s *Store) Turns(ctx context.Context, pool string) (lifecycle.Turns, error) {
	end, err := s.begin(ctx, "read turns of pool "+pool)
	if err != nil {
		return lifecycle.Turns{}, err
	}
	defer end()
	if t, ok := s.turns[pool]; ok {
		return row.Turns(t), nil
	}
	return lifecycle.Turns{Pool: pool}, nil
}

// UpdateTurns replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateTurns(ctx context.Context, t lifecycle.Turns) (lifecycle.Turns, error) {
	what := "update turns of pool " + t.Pool
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Turns{}, err
	}
	defer end()
	if s.turns[t.Pool].Version != t.Version {
		return lifecycle.Turns{}, lost(what)
	}
	t.Version++
	s.turns[t.Pool] = row.Turns(t)
	return row.Turns(t), nil
}

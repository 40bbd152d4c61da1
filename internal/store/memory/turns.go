package memory

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// SlotTable reads the accounts of a pool; those of one that has none are empty and
// of version 0.
func (s *Store) SlotTable(ctx context.Context, pool string) (lifecycle.SlotTable, error) {
	end, err := s.begin(ctx, "read turns of pool "+pool)
	if err != nil {
		return lifecycle.SlotTable{}, err
	}
	defer end()
	if t, ok := s.turns[pool]; ok {
		return row.Turns(t), nil
	}
	return lifecycle.SlotTable{Pool: pool}, nil
}

// UpdateSlotTable replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error) {
	what := "update turns of pool " + t.Pool
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.SlotTable{}, err
	}
	defer end()
	if s.turns[t.Pool].Version != t.Version {
		return lifecycle.SlotTable{}, lost(what)
	}
	t.Version++
	s.turns[t.Pool] = row.Turns(t)
	return row.Turns(t), nil
}

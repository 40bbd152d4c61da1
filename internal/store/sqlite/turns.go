package sqlite

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// SlotTable reads the accounts of a pool; those of one that has none are empty and
// of version 0.
func (s *Store) SlotTable(ctx context.Context, pool string) (lifecycle.SlotTable, error) {
	return named(ctx, s, turns, "read turns of pool "+pool, pool, lifecycle.SlotTable{Pool: pool})
}

// UpdateSlotTable replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error) {
	t = row.Turns(t)
	t.Version++
	return putNamed(ctx, s, turns, "update turns of pool "+t.Pool, t.Pool, t.Version, t)
}

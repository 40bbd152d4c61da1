package sqlite

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// The guards of the fleet are rows of one table, told apart by how their names
// begin.
const (
	fleetHold     = "hold"
	breakerPrefix = "breaker/"
	accountPrefix = "account/"
)

// FleetHold reads the hold on the whole fleet; one that was never set is empty
// and of version 0.
func (s *Store) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	return named(ctx, s, guards, "read the fleet's hold", fleetHold, lifecycle.FleetHold{})
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	h = row.FleetHold(h)
	h.Version++
	return putNamed(ctx, s, guards, "write the fleet's hold", fleetHold, h.Version, h)
}

// Breaker reads the breaker of a pool; one that was never written is empty and of
// version 0.
func (s *Store) Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error) {
	return named(ctx, s, guards, "read breaker of pool "+pool, breakerPrefix+pool, lifecycle.Breaker{Pool: pool})
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	b = row.Breaker(b)
	b.Version++
	return putNamed(ctx, s, guards, "update breaker of pool "+b.Pool, breakerPrefix+b.Pool, b.Version, b)
}

// QuotaLedger reads the account of a limit; one that was never written is empty and of
// version 0.
func (s *Store) QuotaLedger(ctx context.Context, name string) (lifecycle.QuotaLedger, error) {
	return named(ctx, s, guards, "read account "+name, accountPrefix+name, lifecycle.QuotaLedger{Name: name})
}

// UpdateQuotaLedger replaces the account whose stored version is a.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	a = row.Account(a)
	a.Version++
	return putNamed(ctx, s, guards, "update account "+a.Name, accountPrefix+a.Name, a.Version, a)
}

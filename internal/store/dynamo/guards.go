package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// The guards of the fleet are rows of the leases table, with names that no lease
// has.
const (
	fleetHold     = "guard/hold"
	breakerPrefix = "guard/breaker/"
	accountPrefix = "guard/account/"
)

// accountItem is an account as it is stored: its entries are one attribute, as
// those of turnsItem are, and for the same reason.
type accountItem struct {
	Entries  []byte    `json:"entries,omitempty"`
	LookedAt time.Time `json:"lookedAt,omitzero"`
	Version  int64     `json:"version"`
}

// FleetHold reads the hold on the whole fleet, consistently; one that was never
// set is empty and of version 0.
func (s *Store) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	h, err := named(ctx, s, "read the fleet's hold", fleetHold, lifecycle.FleetHold{})
	return row.FleetHold(h), err
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	h = row.FleetHold(h)
	h.Version++
	if err := s.putNamed(ctx, "write the fleet's hold", fleetHold, h.Version, h); err != nil {
		return lifecycle.FleetHold{}, err
	}
	return h, nil
}

// Breaker reads the breaker of a pool, consistently; one that was never written is
// empty and of version 0.
func (s *Store) Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error) {
	b, err := named(ctx, s, "read breaker of pool "+pool, breakerPrefix+pool, lifecycle.Breaker{Pool: pool})
	return row.Breaker(b), err
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	b = row.Breaker(b)
	b.Version++
	if err := s.putNamed(ctx, "update breaker of pool "+b.Pool, breakerPrefix+b.Pool, b.Version, b); err != nil {
		return lifecycle.Breaker{}, err
	}
	return b, nil
}

// QuotaLedger reads the account of a limit, consistently; one that was never written
// is empty and of version 0.
func (s *Store) QuotaLedger(ctx context.Context, name string) (lifecycle.QuotaLedger, error) {
	what := "read account " + name
	stored, err := named(ctx, s, what, accountPrefix+name, accountItem{})
	if err != nil {
		return lifecycle.QuotaLedger{}, err
	}
	entries, err := inflated[lifecycle.Reservation](stored.Entries)
	if err != nil {
		return lifecycle.QuotaLedger{}, fmt.Errorf("%s: %w", what, damagedError{"entries"})
	}
	return row.Account(lifecycle.QuotaLedger{Name: name, Reservations: entries, AuditedAt: stored.LookedAt, Version: stored.Version}), nil
}

// UpdateQuotaLedger replaces the account whose stored version is a.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	what := "update account " + a.Name
	a = row.Account(a)
	a.Version++
	entries, err := deflated(a.Reservations)
	if err != nil {
		return lifecycle.QuotaLedger{}, fmt.Errorf("%s: %w", what, err)
	}
	stored := accountItem{Entries: entries, LookedAt: a.AuditedAt, Version: a.Version}
	if err := s.putNamed(ctx, what, accountPrefix+a.Name, a.Version, stored); err != nil {
		return lifecycle.QuotaLedger{}, err
	}
	return a, nil
}

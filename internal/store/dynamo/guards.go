package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// guard reads a row of the leases table, consistently; where there is none it is
// none.
func guard[T any](ctx context.Context, s *Store, what, name string, none T) (T, error) {
	var zero T
	if err := begin(ctx, what); err != nil {
		return zero, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(leases), Key: item{leaseName: text(name)}, ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return zero, s.failed(what, leases, err)
	}
	if out.Item == nil {
		return none, nil
	}
	g, err := decode[T](out.Item)
	if err != nil {
		return zero, fmt.Errorf("%s: %w", what, err)
	}
	return g, nil
}

// setGuard writes a row of the leases table, whose stored version must be the one
// before version (1: there is none): else ErrLost.
func (s *Store) setGuard(ctx context.Context, what, name string, version int64, g any) error {
	if err := begin(ctx, what); err != nil {
		return err
	}
	holds := isVersion(version - 1)
	if version == 1 {
		holds = isNone(leaseName)
	}
	it, err := encode(g, noExpiry)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	it[leaseName] = text(name)
	if err = s.put(ctx, what, leases, it, holds); errors.Is(err, errCondition) {
		return lost(what)
	}
	return err
}

// FleetHold reads the hold on the whole fleet, consistently; one that was never
// set is empty and of version 0.
func (s *Store) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	h, err := guard(ctx, s, "read the fleet's hold", fleetHold, lifecycle.FleetHold{})
	return row.FleetHold(h), err
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	h = row.FleetHold(h)
	h.Version++
	if err := s.setGuard(ctx, "write the fleet's hold", fleetHold, h.Version, h); err != nil {
		return lifecycle.FleetHold{}, err
	}
	return h, nil
}

// Breaker reads the breaker of a pool, consistently; one that was never written is
// empty and of version 0.
func (s *Store) Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error) {
	b, err := guard(ctx, s, "read breaker of pool "+pool, breakerPrefix+pool, lifecycle.Breaker{Pool: pool})
	return row.Breaker(b), err
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	b = row.Breaker(b)
	b.Version++
	if err := s.setGuard(ctx, "update breaker of pool "+b.Pool, breakerPrefix+b.Pool, b.Version, b); err != nil {
		return lifecycle.Breaker{}, err
	}
	return b, nil
}

// Account reads the account of a limit, consistently; one that was never written
// is empty and of version 0.
func (s *Store) Account(ctx context.Context, name string) (lifecycle.Account, error) {
	what := "read account " + name
	stored, err := guard(ctx, s, what, accountPrefix+name, accountItem{})
	if err != nil {
		return lifecycle.Account{}, err
	}
	entries, err := inflated[lifecycle.Entry](stored.Entries)
	if err != nil {
		return lifecycle.Account{}, fmt.Errorf("%s: %w", what, damagedError{"entries"})
	}
	return row.Account(lifecycle.Account{Name: name, Entries: entries, LookedAt: stored.LookedAt, Version: stored.Version}), nil
}

// UpdateAccount replaces the account whose stored version is a.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateAccount(ctx context.Context, a lifecycle.Account) (lifecycle.Account, error) {
	what := "update account " + a.Name
	a = row.Account(a)
	a.Version++
	entries, err := deflated(a.Entries)
	if err != nil {
		return lifecycle.Account{}, fmt.Errorf("%s: %w", what, err)
	}
	stored := accountItem{Entries: entries, LookedAt: a.LookedAt, Version: a.Version}
	if err := s.setGuard(ctx, what, accountPrefix+a.Name, a.Version, stored); err != nil {
		return lifecycle.Account{}, err
	}
	return a, nil
}

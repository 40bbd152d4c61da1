package sqlite

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// The guards of the fleet are rows of one table, told apart by how their names
// begin.
const (
	fleetHold     = "hold"
	breakerPrefix = "breaker/"
	accountPrefix = "account/"
)

const (
	selectGuard = `SELECT doc FROM guards WHERE name = ?1`
	insertGuard = `INSERT INTO guards (doc, version, name) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	updateGuard = `UPDATE guards SET doc = ?1, version = ?2 WHERE name = ?3 AND version = ?2 - 1`
)

// guard reads the row of a name; where there is none it is none.
func guard[T any](ctx context.Context, s *Store, what, name string, none T) (g T, err error) {
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		g, err = one[T](c, what, selectGuard, name)
		return err
	})
	if errors.Is(err, lifecycle.ErrNotFound) {
		return none, nil
	}
	return g, err
}

// setGuard writes the row of a name, whose stored version must be the one before
// version (1: there is none), and returns it: else ErrLost.
func setGuard[T any](ctx context.Context, s *Store, what, name string, version int64, g T) (T, error) {
	var none T
	query := updateGuard
	if version == 1 {
		query = insertGuard
	}
	doc, err := document(what, g)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrLost, query, doc, version, name)
	}
	if err != nil {
		return none, err
	}
	return g, nil
}

// FleetHold reads the hold on the whole fleet; one that was never set is empty
// and of version 0.
func (s *Store) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	return guard(ctx, s, "read the fleet's hold", fleetHold, lifecycle.FleetHold{})
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	h = row.FleetHold(h)
	h.Version++
	return setGuard(ctx, s, "write the fleet's hold", fleetHold, h.Version, h)
}

// Breaker reads the breaker of a pool; one that was never written is empty and of
// version 0.
func (s *Store) Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error) {
	return guard(ctx, s, "read breaker of pool "+pool, breakerPrefix+pool, lifecycle.Breaker{Pool: pool})
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	b = row.Breaker(b)
	b.Version++
	return setGuard(ctx, s, "update breaker of pool "+b.Pool, breakerPrefix+b.Pool, b.Version, b)
}

// Account reads the account of a limit; one that was never written is empty and of
// version 0.
func (s *Store) Account(ctx context.Context, name string) (lifecycle.Account, error) {
	return guard(ctx, s, "read account "+name, accountPrefix+name, lifecycle.Account{Name: name})
}

// UpdateAccount replaces the account whose stored version is a.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateAccount(ctx context.Context, a lifecycle.Account) (lifecycle.Account, error) {
	a = row.Account(a)
	a.Version++
	return setGuard(ctx, s, "update account "+a.Name, accountPrefix+a.Name, a.Version, a)
}

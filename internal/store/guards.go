package store

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
)

// The guards of the fleet are few rows by name. A database keeps them in one table, apart by the prefixes of their
// keys; a new kind like them needs no table of its own.

// FleetHolds has one row: the hold on the whole fleet.
var FleetHolds = define(Spec[fleethold.Hold]{
	Name:       "fleet_hold",
	Label:      func(Key) string { return "the fleet's hold" },
	Key:        func(*fleethold.Hold) Key { return Key{} },
	KeyColumns: []string{"name"},
	Version:    func(h *fleethold.Hold) *int64 { return &h.Version },
	Upsert:     true,
	Blank:      func(Key) fleethold.Hold { return fleethold.Hold{} },
	SQL:        Table{Name: "guards", Prefix: "hold"}, Dynamo: Table{Name: "leases", Prefix: "guard/hold"},
})

// Breakers are the breakers of the pools.
var Breakers = define(Spec[breaker.Row]{
	Name:       "breaker",
	Label:      func(key Key) string { return "breaker of pool " + key[0] },
	Key:        func(b *breaker.Row) Key { return Key{b.Pool} },
	KeyColumns: []string{"name"},
	Version:    func(b *breaker.Row) *int64 { return &b.Version },
	Upsert:     true,
	Blank:      func(key Key) breaker.Row { return breaker.Row{Pool: key[0]} },
	SQL:        Table{Name: "guards", Prefix: "breaker/"}, Dynamo: Table{Name: "leases", Prefix: "guard/breaker/"},
})

// Pauses are the pauses of pools.
var Pauses = define(Spec[pause.Pause]{
	Name:       "pause",
	Label:      func(key Key) string { return "pause of pool " + key[0] },
	Key:        func(p *pause.Pause) Key { return Key{p.Pool} },
	KeyColumns: []string{"name"},
	Version:    func(p *pause.Pause) *int64 { return &p.Version },
	Upsert:     true,
	Blank:      func(key Key) pause.Pause { return pause.Pause{Pool: key[0]} },
	SQL:        Table{Name: "guards", Prefix: "pause/"}, Dynamo: Table{Name: "leases", Prefix: "guard/pause/"},
})

// Leases say which replica sweeps.
var Leases = define(Spec[replicas.Lease]{
	Name:       "lease",
	Key:        func(l *replicas.Lease) Key { return Key{l.Name} },
	KeyColumns: []string{"name"},
	Version:    func(l *replicas.Lease) *int64 { return &l.Version },
	Upsert:     true,
	SQL:        Table{Name: "guards", Prefix: "lease/"}, Dynamo: Table{Name: "leases"},
})

// ReplicaSets has one row: the replicas that are alive.
var ReplicaSets = define(Spec[replicas.Row]{
	Name:       "replicas",
	Label:      func(Key) string { return "the replicas" },
	Key:        func(*replicas.Row) Key { return Key{} },
	KeyColumns: []string{"name"},
	Version:    func(r *replicas.Row) *int64 { return &r.Version },
	Upsert:     true,
	Blank:      func(Key) replicas.Row { return replicas.Row{} },
	SQL:        Table{Name: "guards", Prefix: "replicas"}, Dynamo: Table{Name: "leases", Prefix: "guard/replicas"},
})

// maxChecks is how many bytes the open check runs have as JSON, at most.
const maxChecks = 1 << 19

// CheckTables has one row: the check runs that are open. They are compressed for the same reason as slots.
var CheckTables = define(Spec[checkrun.Table]{
	Name:       "checks",
	Label:      func(Key) string { return "the open check runs" },
	Key:        func(*checkrun.Table) Key { return Key{} },
	KeyColumns: []string{"name"},
	Version:    func(t *checkrun.Table) *int64 { return &t.Version },
	Upsert:     true,
	Blank:      func(Key) checkrun.Table { return checkrun.Table{} },
	SQL:        Table{Name: "guards", Prefix: "checks"}, Dynamo: Table{Name: "leases", Prefix: "guard/checks"},
	Large: []Large[checkrun.Table]{{"open", func(t *checkrun.Table) any { return &t.Open }, maxChecks}},
})

// maxReservations is how many bytes the reservations of a ledger have as JSON, at most.
const maxReservations = 1 << 20

// QuotaLedgers are the ledgers of limits on hosts. Their reservations are compressed for the same reason as slots.
var QuotaLedgers = define(Spec[ledger.Quota]{
	Name:       "account",
	Key:        func(a *ledger.Quota) Key { return Key{a.Name} },
	KeyColumns: []string{"name"},
	Version:    func(a *ledger.Quota) *int64 { return &a.Version },
	Upsert:     true,
	Blank:      func(key Key) ledger.Quota { return ledger.Quota{Name: key[0]} },
	SQL:        Table{Name: "guards", Prefix: "account/"}, Dynamo: Table{Name: "leases", Prefix: "guard/account/"},
	Large: []Large[ledger.Quota]{{"entries", func(a *ledger.Quota) any { return &a.Reservations }, maxReservations}},
})

// CheckTable reads the check runs that are open. A table that was never written is empty and of version 0.
func (s Store) CheckTable(ctx context.Context) (checkrun.Table, error) {
	return get(ctx, s, CheckTables, Key{})
}

// UpdateCheckTable replaces the table whose stored version is t.Version (0: there is none): else ErrConflict.
func (s Store) UpdateCheckTable(ctx context.Context, t checkrun.Table) (checkrun.Table, error) {
	return update(ctx, s, CheckTables, t)
}

// FleetHold reads the hold on the whole fleet. One that was never set is empty and of version 0.
func (s Store) FleetHold(ctx context.Context) (fleethold.Hold, error) {
	return get(ctx, s, FleetHolds, Key{})
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is none): else ErrConflict.
func (s Store) UpdateFleetHold(ctx context.Context, h fleethold.Hold) (fleethold.Hold, error) {
	return update(ctx, s, FleetHolds, h)
}

// Breaker reads the breaker of a pool. One that was never written is empty and of version 0.
func (s Store) Breaker(ctx context.Context, pool string) (breaker.Row, error) {
	return get(ctx, s, Breakers, Key{pool})
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there is none): else ErrConflict.
func (s Store) UpdateBreaker(ctx context.Context, b breaker.Row) (breaker.Row, error) {
	return update(ctx, s, Breakers, b)
}

// Pause reads the pause of a pool. One that was never written is empty and of version 0.
func (s Store) Pause(ctx context.Context, pool string) (pause.Pause, error) {
	return get(ctx, s, Pauses, Key{pool})
}

// UpdatePause replaces the pause whose stored version is p.Version (0: there is none): else ErrConflict.
func (s Store) UpdatePause(ctx context.Context, p pause.Pause) (pause.Pause, error) {
	return update(ctx, s, Pauses, p)
}

// QuotaLedger reads the ledger of a limit. One that was never written is empty and of version 0.
func (s Store) QuotaLedger(ctx context.Context, name string) (ledger.Quota, error) {
	return get(ctx, s, QuotaLedgers, Key{name})
}

// UpdateQuotaLedger replaces the ledger whose stored version is a.Version (0: there is none): else ErrConflict.
func (s Store) UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (ledger.Quota, error) {
	return update(ctx, s, QuotaLedgers, a)
}

// Replicas reads the row of the replicas. One that was never written is empty and of version 0.
func (s Store) Replicas(ctx context.Context) (replicas.Row, error) {
	return get(ctx, s, ReplicaSets, Key{})
}

// UpdateReplicas replaces the row whose stored version is r.Version (0: there is none): else ErrConflict.
func (s Store) UpdateReplicas(ctx context.Context, r replicas.Row) (replicas.Row, error) {
	return update(ctx, s, ReplicaSets, r)
}

// Lease reads a lease: ErrNotFound if it was never taken.
func (s Store) Lease(ctx context.Context, name string) (replicas.Lease, error) {
	return get(ctx, s, Leases, Key{name})
}

// TakeLease writes the lease if its stored version is l.Version (0: it does not exist): else ErrConflict.
func (s Store) TakeLease(ctx context.Context, l replicas.Lease) (replicas.Lease, error) {
	return updateAs(ctx, s, "take_", Leases, l)
}

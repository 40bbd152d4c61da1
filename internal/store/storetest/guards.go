package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/store"
)

var (
	fleetHolds = kind[fleethold.Hold]{
		KindOf: store.FleetHolds, noun: "the fleet's hold", blank: true,
		keys: []store.Key{{}},
		full: func(store.Key) fleethold.Hold {
			return fleethold.Hold{Until: start.Add(time.Hour), SetAt: start, By: "CN=ops", Reason: "looking", Version: 1}
		},
		bare:   func(store.Key) fleethold.Hold { return fleethold.Hold{} },
		update: store.Store.UpdateFleetHold,
		get: func(s store.Store, ctx context.Context, _ store.Key) (fleethold.Hold, error) {
			return s.FleetHold(ctx)
		},
	}
	breakers = kind[breaker.Row]{
		KindOf: store.Breakers, noun: "a breaker", blank: true,
		keys: []store.Key{{jobPool}, {"other"}},
		full: func(key store.Key) breaker.Row {
			return breaker.Row{
				Pool: key[0], OpenUntil: start.Add(time.Hour), RefusedTemplate: "7", RefusedAt: start, Version: 1,
				Interruptions: []breaker.Interruption{{InstanceID: "i-a", At: start}, {InstanceID: "i-b", At: start.Add(1)}},
			}
		},
		bare:   func(key store.Key) breaker.Row { return breaker.Row{Pool: key[0]} },
		update: store.Store.UpdateBreaker,
		get: func(s store.Store, ctx context.Context, key store.Key) (breaker.Row, error) {
			return s.Breaker(ctx, key[0])
		},
	}
	pauses = kind[pause.Pause]{
		KindOf: store.Pauses, noun: "a pause", blank: true,
		keys: []store.Key{{jobPool}, {"other"}},
		full: func(key store.Key) pause.Pause {
			return pause.Pause{Pool: key[0], Since: start, From: start.Add(-2 * time.Hour), Until: start.Add(-time.Hour), By: "CN=ops", Reason: "a new image", Version: 1}
		},
		bare:   func(key store.Key) pause.Pause { return pause.Pause{Pool: key[0]} },
		update: store.Store.UpdatePause,
		get: func(s store.Store, ctx context.Context, key store.Key) (pause.Pause, error) {
			return s.Pause(ctx, key[0])
		},
	}
	ledgers = kind[ledger.Quota]{
		KindOf: store.QuotaLedgers, noun: "an account", blank: true,
		keys: []store.Key{{"repository/acme/site"}, {"pool/a"}},
		full: func(key store.Key) ledger.Quota {
			return ledger.Quota{Name: key[0], AuditedAt: start.Add(time.Minute), Version: 1, Reservations: []ledger.Reservation{
				{Repository: repository, RunID: runID, RequestID: "a", Launch: 2, Hosts: 2, HostKeys: []string{"a", "b"}, At: start},
				{Repository: repository, RunID: runID, RequestID: "b", Hosts: 200, At: start.Add(1)},
			}}
		},
		bare:   func(key store.Key) ledger.Quota { return ledger.Quota{Name: key[0]} },
		update: store.Store.UpdateQuotaLedger,
		get: func(s store.Store, ctx context.Context, key store.Key) (ledger.Quota, error) {
			return s.QuotaLedger(ctx, key[0])
		},
	}
	checkTables = kind[checkrun.Table]{
		KindOf: store.CheckTables, noun: "the open check runs", blank: true,
		keys: []store.Key{{}},
		full: func(store.Key) checkrun.Table {
			return checkrun.Table{Open: []checkrun.Check{
				{Repository: repository, RunID: runID, ID: beyondFloat, Since: start, Shown: "0011223344556677", TriedAt: start.Add(1), Refused: true},
				{Repository: "acme/other", RunID: "2", Since: start.Add(time.Minute)},
			}, Version: 1}
		},
		bare:   func(store.Key) checkrun.Table { return checkrun.Table{} },
		update: store.Store.UpdateCheckTable,
		get: func(s store.Store, ctx context.Context, _ store.Key) (checkrun.Table, error) {
			return s.CheckTable(ctx)
		},
	}
	replicaSets = kind[replicas.Row]{
		KindOf: store.ReplicaSets, noun: "the replicas", blank: true,
		keys: []store.Key{{}},
		full: func(store.Key) replicas.Row {
			return replicas.Row{Alive: []replicas.Replica{
				{Name: "a-1-X", Beats: 1, Version: "1.2.3", StartedAt: start, ClockOffset: -time.Second}, {Name: "b.example-2-Y", Beats: beyondFloat},
			}, Version: 1}
		},
		bare:   func(store.Key) replicas.Row { return replicas.Row{} },
		update: store.Store.UpdateReplicas,
		get: func(s store.Store, ctx context.Context, _ store.Key) (replicas.Row, error) {
			return s.Replicas(ctx)
		},
	}
	// leases are taken without a create, but one that was never taken is not found.
	leases = kind[replicas.Lease]{
		KindOf: store.Leases, noun: "a lease",
		keys:    []store.Key{{"sweep"}, {"other"}},
		strange: []store.Key{{"swee"}},
		full:    func(key store.Key) replicas.Lease { return replicas.Lease{Name: key[0], Holder: "a", Version: 1} },
		bare:    func(key store.Key) replicas.Lease { return replicas.Lease{Name: key[0]} },
		update:  store.Store.TakeLease,
		get: func(s store.Store, ctx context.Context, key store.Key) (replicas.Lease, error) {
			return s.Lease(ctx, key[0])
		},
	}
)

var _ = add(group{name: "guards", tests: slices.Concat(
	prefixed("the fleet's hold: ", fleetHolds.cases()),
	prefixed("breakers: ", breakers.cases()),
	prefixed("pauses: ", pauses.cases()),
	prefixed("accounts: ", ledgers.cases()),
	prefixed("the replicas: ", replicaSets.cases()),
	[]suiteTest{
		{"guards of one kind and name are no others'", testGuardNames},
		{"an account of a thousand hosts", testLargeAccount},
	},
)})

var _ = add(group{name: "leases", tests: leases.cases()})

func prefixed(prefix string, tests []suiteTest) []suiteTest {
	for i := range tests {
		tests[i].name = prefix + tests[i].name
	}
	return tests
}

func testGuardNames(t *testing.T, w world) {
	names := []string{"a", "A", "a ", "hold", "pool/a", "pool/a/b", "%", "'; --", "é\"{}\\"}
	for i, name := range names {
		ledgers.put(t, w, ledger.Quota{Name: name, Reservations: []ledger.Reservation{{RunID: name, Hosts: i + 1, At: start}}})
		breakers.put(t, w, breaker.Row{Pool: name, OpenUntil: start.Add(time.Duration(i))})
		pauses.put(t, w, pause.Pause{Pool: name, Since: start.Add(time.Duration(i))})
		leases.put(t, w, replicas.Lease{Name: name, Holder: name})
	}
	for i, name := range names {
		want := ledger.Quota{Name: name, Reservations: []ledger.Reservation{{RunID: name, Hosts: i + 1, At: start}}, Version: 1}
		equal(t, "account "+name, want, ledgers.stored(t, w, name))
		row := breaker.Row{Pool: name, OpenUntil: start.Add(time.Duration(i)), Version: 1}
		equal(t, "breaker "+name, row, breakers.stored(t, w, name))
		equal(t, "pause "+name, pause.Pause{Pool: name, Since: start.Add(time.Duration(i)), Version: 1}, pauses.stored(t, w, name))
		equal(t, "lease "+name, replicas.Lease{Name: name, Holder: name, Version: 1}, leases.stored(t, w, name))
	}
	equal(t, "the hold, which was never set", fleethold.Hold{}, fleetHolds.stored(t, w))
}

// testLargeAccount is of the largest limit that can be configured, with every host in a launch of its own.
func testLargeAccount(t *testing.T, w world) {
	a := ledger.Quota{Name: "pool/large"}
	for _, key := range hostKeys(1000) {
		a.Reservations = append(a.Reservations, ledger.Reservation{
			Repository: repository, RunID: runID, RequestID: "request-of-" + key, Launch: 1, Hosts: 1, At: start,
			HostKeys: []string{"AROAEXAMPLEEXAMPLE123:i-" + key},
		})
	}
	ledgers.put(t, w, a)
	a.Version = 1
	equal(t, "account", a, ledgers.stored(t, w, a.Name))
	if got := a.Used(); got != 1000 {
		t.Errorf("%d are used, want 1000", got)
	}
}

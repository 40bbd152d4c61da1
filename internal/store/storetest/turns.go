package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

var slotTables = kind[lifecycle.SlotTable]{
	KindOf: store.SlotTables, noun: "a table of slots", blank: true,
	keys:   []store.Key{{jobPool}, {"other"}},
	full:   func(key store.Key) lifecycle.SlotTable { return fullTurns(key[0]) },
	bare:   func(key store.Key) lifecycle.SlotTable { return lifecycle.SlotTable{Pool: key[0]} },
	update: store.Store.UpdateSlotTable,
	get: func(s store.Store, ctx context.Context, key store.Key) (lifecycle.SlotTable, error) {
		return s.SlotTable(ctx, key[0])
	},
}

var _ = add(group{name: "turns", tests: append(slotTables.cases(),
	suiteTest{"a thousand open turns", testManyTurns},
	suiteTest{"whatever the pool is called", slotTables.oddKeys},
)})

func fullTurn(number int64) lifecycle.Slot {
	return lifecycle.Slot{
		Number: number, JobID: beyondFloat, Repository: repository, Scope: "acme", AssignedAt: start.Add(time.Duration(number)),
		HostKey: "a", Runner: "remuda-3-i-a", RunnerID: 1<<40 + 7, Started: true,
	}
}

// fullTurns has a value in every attribute.
func fullTurns(pool string) lifecycle.SlotTable {
	return lifecycle.SlotTable{Pool: pool, Assigned: beyondFloat, Version: 1, Open: []lifecycle.Slot{
		fullTurn(1), {Number: 2, Repository: repository, Scope: repository, AssignedAt: start}, fullTurn(beyondFloat),
	}}
}

// testManyTurns has as many turns as a pool can have, each as long as GitHub and
// AWS allow: owners of 39 characters, repositories of 100.
func testManyTurns(t *testing.T, w world) {
	want := lifecycle.SlotTable{Pool: jobPool, Assigned: 100_000}
	for n := range int64(1000) {
		name := fmt.Sprintf("%s/%0100d", strings.Repeat("o", 39), n)
		want.Open = append(want.Open, lifecycle.Slot{
			Number: 99_000 + n, JobID: beyondFloat + 7919*n, Repository: name, Scope: name, AssignedAt: start.Add(7919 * time.Duration(n)), Started: n%2 == 0,
			HostKey: fmt.Sprintf("AROAEXAMPLEEXAMPLE123:i-%017x", 104729*n), Runner: lifecycle.RunnerName(n, fmt.Sprintf("i-%017x", 104729*n)),
		})
	}
	slotTables.put(t, w, want)
	want.Version = 1
	equal(t, "turns", want, slotTables.stored(t, w, jobPool))
	want.Open = want.Open[1:]
	slotTables.replace(t, w, want)
	want.Version = 2
	equal(t, "turns after one ended", want, slotTables.stored(t, w, jobPool))
}

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "turns", tests: []suiteTest{
	{"the accounts of a pool come back as they were written", testTurnsRoundTrip},
	{"a pool without accounts has empty ones", testTurnsNone},
	{"an update needs the stored version", testTurnsVersion},
	{"rows share nothing with their callers", testTurnsAliasing},
	{"a thousand open turns", testManyTurns},
	{"whatever the pool is called", testTurnsPools},
}})

func fullTurn(number int64) lifecycle.Slot {
	return lifecycle.Slot{
		Number: number, JobID: beyondFloat, Repository: repository, Scope: "acme", AssignedAt: start.Add(time.Duration(number)),
		HostKey: "a", Runner: "remuda-3-i-a", RunnerID: 1<<40 + 7, Started: true,
	}
}

// fullTurns has a value in every attribute, and is the first for its pool.
func fullTurns(pool string) lifecycle.SlotTable {
	return lifecycle.SlotTable{Pool: pool, Assigned: beyondFloat, Open: []lifecycle.Slot{
		fullTurn(1), {Number: 2, Repository: repository, Scope: repository, AssignedAt: start}, fullTurn(beyondFloat),
	}}
}

func (w world) turns(t *testing.T, pool string) lifecycle.SlotTable {
	t.Helper()
	turns, err := w.Store.SlotTable(t.Context(), pool)
	if err != nil {
		t.Fatalf("Turns(%s): %v", pool, err)
	}
	return turns
}

func (w world) updateTurns(t *testing.T, turns lifecycle.SlotTable) lifecycle.SlotTable {
	t.Helper()
	stored, err := w.Store.UpdateSlotTable(t.Context(), turns)
	if err != nil {
		t.Fatalf("UpdateTurns(%s): %v", turns.Pool, err)
	}
	return stored
}

func testTurnsRoundTrip(t *testing.T, w world) {
	want := fullTurns(jobPool)
	isFull(t, want.Open[0])
	got := w.updateTurns(t, want)
	want.Version = 1
	isFull(t, want)
	equal(t, "what update returns", want, got)
	got = w.turns(t, jobPool)
	equal(t, "turns", want, got)
	isUTC(t, "givenAt", got.Open[0].AssignedAt)

	elsewhere := want
	elsewhere.Open = []lifecycle.Slot{fullTurn(1)}
	elsewhere.Open[0].AssignedAt = start.In(time.FixedZone("elsewhere", 2*60*60))
	got = w.updateTurns(t, elsewhere)
	isUTC(t, "givenAt as update returns it", got.Open[0].AssignedAt)
	equal(t, "what update returns and what is stored", got, w.turns(t, jobPool))
}

func testTurnsNone(t *testing.T, w world) {
	equal(t, "turns", lifecycle.SlotTable{Pool: jobPool}, w.turns(t, jobPool))
	w.updateTurns(t, lifecycle.SlotTable{Pool: jobPool, Open: []lifecycle.Slot{}})
	equal(t, "turns after an empty write", lifecycle.SlotTable{Pool: jobPool, Version: 1}, w.turns(t, jobPool))
	equal(t, "turns of another", lifecycle.SlotTable{Pool: "other"}, w.turns(t, "other"))
}

func testTurnsVersion(t *testing.T, w world) {
	update := func(version int64) error {
		_, err := w.Store.UpdateSlotTable(t.Context(), lifecycle.SlotTable{Pool: jobPool, Assigned: 7, Version: version})
		return err
	}
	for _, version := range []int64{-1, 1} {
		wantError(t, "update of none with a version", update(version), lifecycle.ErrConflict)
	}
	first := w.updateTurns(t, fullTurns(jobPool))
	for _, version := range []int64{-1, 0, 2} {
		wantError(t, "update with another version", update(version), lifecycle.ErrConflict)
	}
	equal(t, "turns", first, w.turns(t, jobPool))
	want := lifecycle.SlotTable{Pool: jobPool, Assigned: beyondFloat + 1, Version: 1}
	got := w.updateTurns(t, want)
	want.Version = 2
	equal(t, "what update returns", want, got)
	equal(t, "turns", want, w.turns(t, jobPool))
}

func testTurnsAliasing(t *testing.T, w world) {
	scribble := func(turns lifecycle.SlotTable) { turns.Open[0].Runner = "scribbled" }
	want := fullTurns(jobPool)
	want.Version = 1
	turns := fullTurns(jobPool)
	updated := w.updateTurns(t, turns)
	scribble(turns)
	scribble(updated)
	equal(t, "turns after both sides of an update changed their own", want, w.turns(t, jobPool))
	scribble(w.turns(t, jobPool))
	equal(t, "turns after a reader changed its own", want, w.turns(t, jobPool))
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
	w.updateTurns(t, want)
	want.Version = 1
	equal(t, "turns", want, w.turns(t, jobPool))
	want.Open = want.Open[1:]
	w.updateTurns(t, want)
	want.Version = 2
	equal(t, "turns after one ended", want, w.turns(t, jobPool))
}

func testTurnsPools(t *testing.T, w world) {
	pools := []string{"a", "A", "a ", "a/b", "%", "'; --", "é\"{}\\"}
	for i, pool := range pools {
		w.updateTurns(t, lifecycle.SlotTable{Pool: pool, Assigned: int64(i)})
	}
	for i, pool := range pools {
		equal(t, "turns of "+pool, lifecycle.SlotTable{Pool: pool, Assigned: int64(i), Version: 1}, w.turns(t, pool))
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/storetest/rowtest"
)

// kind is a kind of rows as the suite sees it: how its rows are made, and the store's methods for them. The cases that
// every kind has are its methods; what only one kind promises is in the file of that kind.
type kind[T any] struct {
	store.KindOf[T]
	noun string // of one row: "a record"
	// keys are in the order of the kind's listings, and alike. The first is that of the row under test.
	keys []store.Key
	// strange are keys that are never written.
	strange []store.Key
	// full makes a row with a value in every attribute, of version 1. bare makes one with little more than its key.
	full, bare func(store.Key) T

	create func(store.Store, context.Context, T) error // nil for an Upsert kind
	update func(store.Store, context.Context, T) (T, error)
	get    func(store.Store, context.Context, store.Key) (T, error)
	due    func(store.Store, context.Context, time.Time, lifecycle.PageOf) (lifecycle.Page[T], error)
	// blank says that a read of a row that was never written returns the bare one, of version 0.
	blank bool
	// lists are listings that hold the full row under test, and no other.
	lists map[string]func(context.Context, store.Store) ([]T, error)
}

// anyKind is a kind whose type of rows does not matter.
type anyKind interface {
	seed(t *testing.T, w world)
	addDue(t *testing.T, w world, at time.Time)
	calls(s store.Store) map[string]func(context.Context) error
	putLive(t *testing.T, w world) (soon, forever func())
	putExpiring(t *testing.T, w world) (check func())
	oneCreates(t *testing.T, w world)
}

// kinds are all of them.
var kinds = []anyKind{
	instances, requests, webhooks, jobs, work, workers, services, slotTables, fleetHolds, breakers, ledgers, leases, days, checkTables, callDays,
}

// cases are those that every kind has.
func (k kind[T]) cases() []suiteTest {
	tests := []suiteTest{
		{k.noun + " comes back as it was written", k.comesBack},
		{"an update needs the stored version", k.needsVersion},
		{"rows share nothing with their callers", k.sharesNothing},
	}
	if k.create != nil {
		tests = append(tests, suiteTest{"a key is taken once", k.takenOnce})
	}
	return tests
}

// row is the full row under test.
func (k kind[T]) row() T { return k.full(k.keys[0]) }

// version is the row with another version.
func (k kind[T]) version(row T, version int64) T {
	*k.Version(&row) = version
	return row
}

// first writes a row that is not stored yet.
func (k kind[T]) first(ctx context.Context, s store.Store, row T) error {
	if k.create != nil {
		return k.create(s, ctx, row)
	}
	_, err := k.update(s, ctx, k.version(row, 0))
	return err
}

// put writes rows that are not stored yet.
func (k kind[T]) put(t *testing.T, w world, rows ...T) {
	t.Helper()
	for _, row := range rows {
		if err := k.first(t.Context(), w.Store, row); err != nil {
			t.Fatalf("write %s: %v", k.Label(k.Key(&row)), err)
		}
	}
}

// stored reads a row by the parts of its key.
func (k kind[T]) stored(t *testing.T, w world, key ...string) T {
	t.Helper()
	return k.at(t, w, keyOf(key...))
}

func (k kind[T]) at(t *testing.T, w world, key store.Key) T {
	t.Helper()
	row, err := k.get(w.Store, t.Context(), key)
	if err != nil {
		t.Fatalf("read %s: %v", k.Label(key), err)
	}
	return row
}

// replace updates a row and returns it as stored.
func (k kind[T]) replace(t *testing.T, w world, row T) T {
	t.Helper()
	stored, err := k.update(w.Store, t.Context(), row)
	if err != nil {
		t.Fatalf("update %s: %v", k.Label(k.Key(&row)), err)
	}
	return stored
}

// change updates a stored row.
func (k kind[T]) change(t *testing.T, w world, change func(*T), key ...string) {
	t.Helper()
	row := k.stored(t, w, key...)
	change(&row)
	k.replace(t, w, row)
}

func keyOf(parts ...string) (key store.Key) {
	copy(key[:], parts)
	return key
}

// comesBack: with every attribute, and without any but the key. Times come back in UTC to the nanosecond, and empty
// lists as none. A row that was created has version 1, whatever the caller says.
func (k kind[T]) comesBack(t *testing.T, w world) {
	want, given := k.row(), k.row()
	rowtest.IsFull(t, k.Name, reflect.ValueOf(want))
	rowtest.Relocate(&given)
	k.put(t, w, given)
	equal(t, k.Name, want, k.at(t, w, k.keys[0]))
	rowtest.IsCanonical(t, k.at(t, w, k.keys[0]))
	for name, list := range k.lists {
		got, err := list(t.Context(), w.Store)
		if err != nil {
			t.Error(err)
		}
		equal(t, name, []T{want}, got)
	}
	got := k.replace(t, w, given)
	equal(t, "what update returns", k.version(want, 2), got)
	rowtest.IsCanonical(t, got)
	equal(t, k.Name+" after the update", got, k.at(t, w, k.keys[0]))

	if len(k.keys) > 1 {
		hollow := k.version(k.bare(k.keys[1]), 7)
		rowtest.EmptyLists(&hollow)
		k.put(t, w, hollow)
		equal(t, k.Name+" without attributes", k.version(k.bare(k.keys[1]), 1), k.at(t, w, k.keys[1]))
	}
}

// takenOnce: and rows of like keys are others.
func (k kind[T]) takenOnce(t *testing.T, w world) {
	k.put(t, w, k.row())
	wantError(t, "second create", k.create(w.Store, t.Context(), k.bare(k.keys[0])), lifecycle.ErrExists)
	equal(t, k.Name, k.row(), k.at(t, w, k.keys[0]))
	for _, key := range k.keys[1:] {
		k.put(t, w, k.full(key))
	}
	for _, key := range k.keys {
		equal(t, k.Name+" among others of like keys", k.full(key), k.at(t, w, key))
	}
}

// needsVersion: an update with another version changes nothing, and one with the stored version replaces every
// attribute.
func (k kind[T]) needsVersion(t *testing.T, w world) {
	conflicts := func(key store.Key, versions ...int64) {
		t.Helper()
		for _, version := range versions {
			_, err := k.update(w.Store, t.Context(), k.version(k.full(key), version))
			wantError(t, fmt.Sprintf("update with version %d", version), err, lifecycle.ErrConflict)
		}
	}
	conflicts(k.keys[0], -1, 1, 2)
	if k.create != nil {
		conflicts(k.keys[0], 0)
	}
	k.isMissing(t, w, k.keys[0])
	k.put(t, w, k.row())
	for i, row := range []T{k.bare(k.keys[0]), k.row(), k.bare(k.keys[0])} {
		stored := int64(i + 1)
		before := k.at(t, w, k.keys[0])
		conflicts(k.keys[0], -1, 0, stored-1, stored+1)
		equal(t, k.Name+" after writes with other versions", before, k.at(t, w, k.keys[0]))
		want := k.version(row, stored+1)
		equal(t, "what update returns", want, k.replace(t, w, k.version(row, stored)))
		equal(t, k.Name, want, k.at(t, w, k.keys[0]))
	}
	for _, key := range slices.Concat(k.strange, k.keys[1:]) {
		k.isMissing(t, w, key)
	}
}

func (k kind[T]) isMissing(t *testing.T, w world, key store.Key) {
	t.Helper()
	got, err := k.get(w.Store, t.Context(), key)
	if !k.blank {
		wantError(t, "read of an unknown "+k.Label(key), err, lifecycle.ErrNotFound)
		return
	}
	equal(t, "an unknown "+k.Label(key), k.version(k.bare(key), 0), got)
	if err != nil {
		t.Error(err)
	}
}

func (k kind[T]) sharesNothing(t *testing.T, w world) {
	row := k.row()
	k.put(t, w, row)
	rowtest.Scribble(row)
	equal(t, k.Name+" after the caller changed its own", k.row(), k.at(t, w, k.keys[0]))
	rowtest.Scribble(k.at(t, w, k.keys[0]))
	for _, list := range k.lists {
		found, err := list(t.Context(), w.Store)
		if err != nil || len(found) == 0 {
			t.Fatalf("listed %d rows, error %v", len(found), err)
		}
		rowtest.Scribble(found[0])
	}
	equal(t, k.Name+" after readers changed their own", k.row(), k.at(t, w, k.keys[0]))

	row = k.row()
	updated := k.replace(t, w, row)
	rowtest.Scribble(row)
	rowtest.Scribble(updated)
	equal(t, k.Name+" after both sides of an update changed their own", k.version(k.row(), 2), k.at(t, w, k.keys[0]))
}

// oddKeys: whatever a key is made of, it is of one row, among rows of other kinds with keys like it.
func (k kind[T]) oddKeys(t *testing.T, w world) {
	odd := []string{"0b1a", "0B1A", "0b1a ", "0b1a/0b1a", "job/1", "%", "'; --", "é\t\"{}\\", "1"}
	jobs.put(t, w, jobs.full(jobKey(1)))
	for _, text := range odd {
		k.isMissing(t, w, store.Key{text})
		k.put(t, w, k.full(store.Key{text}))
	}
	for _, text := range odd {
		equal(t, k.Name+" "+text, k.full(store.Key{text}), k.at(t, w, store.Key{text}))
	}
	k.isMissing(t, w, store.Key{})
}

// byDue: rows of kinds that share a table or an index with it are not in the listing.
func (k kind[T]) byDue(t *testing.T, w world) {
	at := []time.Time{start, start, start.Add(-time.Hour), start, start.Add(time.Nanosecond), {}}
	for i := range slices.Backward(at) {
		row := k.full(k.keys[i])
		*rowtest.TimeIn(&row, "DueAt") = at[i]
		k.put(t, w, row)
	}
	for _, other := range kinds {
		if _, same := other.(kind[T]); !same {
			other.addDue(t, w, start)
		}
	}
	isDue := func(what string, now time.Time, want ...int) {
		t.Helper()
		var keys, found []store.Key
		for _, i := range want {
			keys = append(keys, k.keys[i])
		}
		for _, row := range all(t, 2, func(of lifecycle.PageOf) (lifecycle.Page[T], error) { return k.due(w.Store, t.Context(), now, of) }) {
			found = append(found, k.Key(&row))
		}
		equal(t, what, keys, found)
	}
	isDue("the longest due first", start, 2, 0, 1, 3)
	isDue("a nanosecond later", start.Add(time.Nanosecond), 2, 0, 1, 3, 4)
	isDue("long before", start.Add(-2*time.Hour))
	isDue("in another zone", start.Add(-time.Hour).In(time.FixedZone("elsewhere", -7*60*60)), 2)

	k.change(t, w, func(row *T) { *rowtest.TimeIn(row, "DueAt") = time.Time{} }, k.keys[2][:]...)
	k.change(t, w, func(row *T) { *rowtest.TimeIn(row, "DueAt") = start.Add(time.Minute) }, k.keys[0][:]...)
	isDue("after one is no longer due and one later", start, 1, 3)
}

func (k kind[T]) seed(t *testing.T, w world) { k.put(t, w, k.row()) }

func (k kind[T]) addDue(t *testing.T, w world, at time.Time) {
	row := k.row()
	if k.due != nil {
		*rowtest.TimeIn(&row, "DueAt") = at
		k.put(t, w, row)
	}
}

// calls are the methods for single rows. Each works once after seed.
func (k kind[T]) calls(s store.Store) map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		"get " + k.Name:    func(ctx context.Context) error { _, err := k.get(s, ctx, k.keys[0]); return err },
		"update " + k.Name: func(ctx context.Context) error { _, err := k.update(s, ctx, k.row()); return err },
	}
	if k.create != nil {
		calls["create "+k.Name] = func(ctx context.Context) error { return k.create(s, ctx, k.full(k.keys[1])) }
	}
	if k.due != nil {
		calls["due "+k.Name] = func(ctx context.Context) error { _, err := k.due(s, ctx, start, lifecycle.PageOf{}); return err }
	}
	return calls
}

// putLive writes a row that expires an hour after the start, where rows of the kind expire, and one that stays. It
// returns what checks that each of them is still there.
func (k kind[T]) putLive(t *testing.T, w world) (soon, forever func()) {
	stays, goes, checks := k.row(), []T(nil), func(rows ...T) func() {
		return func() {
			for _, row := range rows {
				equal(t, k.Label(k.Key(&row)), row, k.at(t, w, k.Key(&row)))
			}
		}
	}
	if k.Expiring {
		*rowtest.TimeIn(&stays, "ExpiresAt") = time.Time{}
		goes = append(goes, k.full(k.keys[1]))
		*rowtest.TimeIn(&goes[0], "ExpiresAt") = start.Add(time.Hour)
	}
	k.put(t, w, append(goes, stays)...)
	return checks(goes...), checks(stays)
}

// putExpiring writes a row that expires in a minute, and returns what checks later that it is whole or gone.
func (k kind[T]) putExpiring(t *testing.T, w world) (check func()) {
	if !k.Expiring {
		return func() {}
	}
	row := k.row()
	*rowtest.TimeIn(&row, "ExpiresAt") = start.Add(time.Minute)
	k.put(t, w, row)
	return func() {
		got, err := k.get(w.Store, t.Context(), k.keys[0])
		if err == nil && (!k.blank || *k.Version(&got) != 0) {
			equal(t, k.Name, row, got)
		} else if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			t.Error(err)
		}
	}
}

func (k kind[T]) oneCreates(t *testing.T, w world) {
	loses := lifecycle.ErrConflict
	if k.create != nil {
		loses = lifecycle.ErrExists
	}
	wantOneWinner(t, race(t, loses, func(int) error { return k.first(t.Context(), w.Store, k.row()) }))
}

// oneUpdates tells the writers apart by their reasons.
func (k kind[T]) oneUpdates(t *testing.T, w world) {
	reason := func(row *T) reflect.Value { return reflect.ValueOf(row).Elem().FieldByName("Reason") }
	k.put(t, w, k.row())
	winner := make(chan string, writers)
	wantOneWinner(t, race(t, lifecycle.ErrConflict, func(i int) error {
		row := k.row()
		reason(&row).SetString(fmt.Sprintf("writer %d", i))
		_, err := k.update(w.Store, t.Context(), row)
		if err == nil {
			winner <- reason(&row).String()
		}
		return err
	}))
	row := k.at(t, w, k.keys[0])
	equal(t, "stored "+k.Name, <-winner, reason(&row).String())
}

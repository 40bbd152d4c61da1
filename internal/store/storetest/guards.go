package storetest

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "guards", tests: []suiteTest{
	{"the fleet's hold comes back as it was written", testFleetHold},
	{"a breaker comes back as it was written", testBreaker},
	{"an account comes back as it was written", testAccount},
	{"guards of one kind and name are no others'", testGuardNames},
	{"guards share nothing with their callers", testGuardAliasing},
	{"an account of a thousand hosts", testLargeAccount},
}})

// elsewhere is a time in another zone, which a store keeps in UTC.
func elsewhere(after time.Duration) time.Time {
	return start.Add(after).In(time.FixedZone("elsewhere", 2*60*60))
}

func fullBreaker(pool string) lifecycle.Breaker {
	return lifecycle.Breaker{
		Pool: pool, OpenUntil: elsewhere(time.Hour),
		Interruptions: []lifecycle.Interruption{{InstanceID: "i-a", At: elsewhere(0)}, {InstanceID: "i-b", At: elsewhere(1)}},
	}
}

func fullAccount(name string) lifecycle.QuotaLedger {
	return lifecycle.QuotaLedger{Name: name, AuditedAt: elsewhere(time.Minute), Reservations: []lifecycle.Reservation{
		{Repository: repository, RunID: runID, RequestID: "a", Launch: 2, Hosts: 2, HostKeys: []string{"a", "b"}, At: elsewhere(0)},
		{Repository: repository, RunID: runID, RequestID: "b", Hosts: 200, At: elsewhere(1)},
	}}
}

// testVersions holds one row to the rules of its version: write writes it at a
// version, and read tells the one that is stored.
func testVersions(t *testing.T, write func(version int64) (int64, error), read func() int64) {
	t.Helper()
	for stored := range int64(3) {
		if got := read(); got != stored {
			t.Fatalf("version %d is stored, want %d", got, stored)
		}
		for _, other := range []int64{-1, stored - 1, stored + 1} {
			_, err := write(other)
			wantError(t, "write with another version", err, lifecycle.ErrConflict)
		}
		if got, err := write(stored); err != nil || got != stored+1 {
			t.Fatalf("write at version %d: version %d, error %v", stored, got, err)
		}
	}
}

func testFleetHold(t *testing.T, w world) {
	read := func() lifecycle.FleetHold {
		h, err := w.Store.FleetHold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	equal(t, "a hold that was never set", lifecycle.FleetHold{}, read())
	h := lifecycle.FleetHold{Until: elsewhere(time.Hour), SetAt: elsewhere(0), By: "CN=ops", Reason: "looking"}
	testVersions(t, func(version int64) (int64, error) {
		h.Version = version
		got, err := w.Store.UpdateFleetHold(t.Context(), h)
		return got.Version, err
	}, func() int64 { return read().Version })
	want := lifecycle.FleetHold{Until: start.Add(time.Hour), SetAt: start, By: "CN=ops", Reason: "looking", Version: 3}
	isFull(t, want)
	equal(t, "hold", want, read())
	isUTC(t, "until", read().Until)
	got, err := w.Store.UpdateFleetHold(t.Context(), lifecycle.FleetHold{Version: 3})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a hold that was taken away", lifecycle.FleetHold{Version: 4}, got)
	equal(t, "a hold that was taken away", got, read())
}

func testBreaker(t *testing.T, w world) {
	read := func(pool string) lifecycle.Breaker {
		b, err := w.Store.Breaker(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	equal(t, "a breaker that was never written", lifecycle.Breaker{Pool: jobPool}, read(jobPool))
	b := fullBreaker(jobPool)
	testVersions(t, func(version int64) (int64, error) {
		b.Version = version
		got, err := w.Store.UpdateBreaker(t.Context(), b)
		return got.Version, err
	}, func() int64 { return read(jobPool).Version })
	b.Version = 3
	isFull(t, b)
	isFull(t, b.Interruptions[0])
	got := read(jobPool)
	isUTC(t, "at", got.Interruptions[0].At)
	isUTC(t, "openUntil", got.OpenUntil)
	got.OpenUntil, got.Interruptions[0].At, got.Interruptions[1].At = b.OpenUntil, b.Interruptions[0].At, b.Interruptions[1].At
	equal(t, "breaker", b, got)
	if !read(jobPool).OpenUntil.Equal(b.OpenUntil) || !read(jobPool).Interruptions[1].At.Equal(b.Interruptions[1].At) {
		t.Errorf("other times: %v", read(jobPool))
	}
}

func (w world) account(t *testing.T, name string) lifecycle.QuotaLedger {
	t.Helper()
	a, err := w.Store.QuotaLedger(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w world) updateAccount(t *testing.T, a lifecycle.QuotaLedger) lifecycle.QuotaLedger {
	t.Helper()
	stored, err := w.Store.UpdateQuotaLedger(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func testAccount(t *testing.T, w world) {
	const name = "repository/acme/site"
	equal(t, "an account that was never written", lifecycle.QuotaLedger{Name: name}, w.account(t, name))
	a := fullAccount(name)
	testVersions(t, func(version int64) (int64, error) {
		a.Version = version
		got, err := w.Store.UpdateQuotaLedger(t.Context(), a)
		return got.Version, err
	}, func() int64 { return w.account(t, name).Version })
	a.Version = 3
	isFull(t, a)
	isFull(t, a.Reservations[0])
	got := w.account(t, name)
	isUTC(t, "at", got.Reservations[0].At)
	isUTC(t, "lookedAt", got.AuditedAt)
	for i := range a.Reservations {
		a.Reservations[i].At = a.Reservations[i].At.UTC()
	}
	a.AuditedAt = a.AuditedAt.UTC()
	equal(t, "account", a, got)
	got = w.updateAccount(t, lifecycle.QuotaLedger{Name: name, Reservations: []lifecycle.Reservation{}, Version: 3})
	equal(t, "an account without entries", lifecycle.QuotaLedger{Name: name, Version: 4}, got)
	equal(t, "an account without entries", got, w.account(t, name))
}

func testGuardNames(t *testing.T, w world) {
	names := []string{"a", "A", "a ", "hold", "pool/a", "pool/a/b", "%", "'; --", "é\"{}\\"}
	for i, name := range names {
		w.updateAccount(t, lifecycle.QuotaLedger{Name: name, Reservations: []lifecycle.Reservation{{RunID: name, Hosts: i + 1, At: start}}})
		if _, err := w.Store.UpdateBreaker(t.Context(), lifecycle.Breaker{Pool: name, OpenUntil: start.Add(time.Duration(i))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Store.TakeLease(t.Context(), lifecycle.Lease{Name: name, Holder: name}); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		want := lifecycle.QuotaLedger{Name: name, Reservations: []lifecycle.Reservation{{RunID: name, Hosts: i + 1, At: start}}, Version: 1}
		equal(t, "account "+name, want, w.account(t, name))
		b, err := w.Store.Breaker(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "breaker "+name, lifecycle.Breaker{Pool: name, OpenUntil: start.Add(time.Duration(i)), Version: 1}, b)
	}
	h, err := w.Store.FleetHold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the hold, which nobody set", lifecycle.FleetHold{}, h)
}

func testGuardAliasing(t *testing.T, w world) {
	scribble := func(a lifecycle.QuotaLedger) {
		a.Reservations[0].HostKeys[0], a.Reservations[1].RunID = "scribbled", "scribbled"
	}
	given := fullAccount("pool/a")
	updated := w.updateAccount(t, given)
	want := w.account(t, "pool/a")
	scribble(given)
	scribble(updated)
	equal(t, "account after both sides of an update changed their own", want, w.account(t, "pool/a"))
	scribble(w.account(t, "pool/a"))
	equal(t, "account after a reader changed its own", want, w.account(t, "pool/a"))
}

// testLargeAccount is of the largest limit that can be configured, with every host
// in a launch of its own.
func testLargeAccount(t *testing.T, w world) {
	a := lifecycle.QuotaLedger{Name: "pool/large"}
	for _, key := range hostKeys(1000) {
		a.Reservations = append(a.Reservations, lifecycle.Reservation{
			Repository: repository, RunID: runID, RequestID: "request-of-" + key, Launch: 1, Hosts: 1, At: start,
			HostKeys: []string{"AROAEXAMPLEEXAMPLE123:i-" + key},
		})
	}
	w.updateAccount(t, a)
	a.Version = 1
	equal(t, "account", a, w.account(t, a.Name))
	if got := a.Used(); got != 1000 {
		t.Errorf("%d are used, want 1000", got)
	}
}

package storetest

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "seen", tests: []suiteTest{
	{"an id of a kind is seen once", testSeeOnce},
	{"and again after its time", testSeeOnceAgain},
}})

func testSeeOnce(t *testing.T, w world) {
	until := start.Add(time.Hour)
	for _, seen := range []struct{ kind, id string }{
		{"token", "a"}, {"token", "A"}, {"token", "a "}, {"token", ""}, {"other", "a"}, {"token a", ""}, {"token/a", "b"}, {"token", "a/b"}, {"token", "a b"},
		{"token", "é'; -- %\"{}\\"},
	} {
		if err := w.Store.SeeOnce(t.Context(), seen.kind, seen.id, until); err != nil {
			t.Errorf("first time of %q: %v", seen, err)
		}
		for range 2 {
			wantError(t, "seen before", w.Store.SeeOnce(t.Context(), seen.kind, seen.id, until), lifecycle.ErrExists)
		}
	}
}

// testSeeOnceAgain: another look before the end does not lengthen the time, and an
// id whose time is over does not count, whether or not its row is still there.
func testSeeOnceAgain(t *testing.T, w world) {
	see := func(until time.Time) error { return w.Store.SeeOnce(t.Context(), "token", "a", until) }
	const d = 90*time.Second + time.Nanosecond // no whole second
	if err := see(start.Add(d).In(time.FixedZone("elsewhere", -7*60*60))); err != nil {
		t.Fatal(err)
	}
	w.clock.advance(d - time.Nanosecond)
	wantError(t, "just before its time", see(start.Add(time.Hour)), lifecycle.ErrExists)
	w.clock.advance(time.Nanosecond)
	if err := see(w.clock.Now().Add(d)); err != nil {
		t.Errorf("at its time: %v", err)
	}
	wantError(t, "seen again", see(start.Add(time.Hour)), lifecycle.ErrExists)
	w.churn(t, time.Hour)
	if err := see(w.clock.Now().Add(d)); err != nil {
		t.Errorf("long after its time: %v", err)
	}
	if err := w.Store.SeeOnce(t.Context(), "token", "past", start); err != nil {
		t.Errorf("with a time that is over: %v", err)
	}
}

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// What keeps a request begins with the first of what is said of it in a row, and a limit and a shortage are apart.
func TestWhatKeepsARequestBegan(t *testing.T) {
	start := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	var q lifecycle.Request
	want := func(full, short time.Time) {
		t.Helper()
		if !q.QuotaSince.Equal(full) || !q.ShortSince.Equal(short) {
			t.Errorf("a limit since %s and a shortage since %s, want %s and %s", q.QuotaSince, q.ShortSince, full, short)
		}
	}
	q.KeptByLimit("run 1 has 3", at(1))
	q.KeptByLimit("run 2 has 3", at(2))
	want(at(1), time.Time{})
	q.ShortOf("no c5", at(3))
	q.ShortOf("no m5", at(4))
	want(at(1), at(3))
	if q.Shortage != "no m5" {
		t.Errorf("short of %q", q.Shortage)
	}
	q.KeptByLimit("", at(5))
	want(time.Time{}, at(3))
	q.ShortOf("", at(6))
	q.KeptByLimit("run 4 has 3", at(7))
	want(at(7), time.Time{})
	if q.Shortage != "" || q.QuotaReason != "run 4 has 3" {
		t.Errorf("%q, %q", q.Shortage, q.QuotaReason)
	}
}

func TestHoldBack(t *testing.T) {
	var q lifecycle.Request
	q.HoldBack(lifecycle.Reason{Code: lifecycle.ReasonShortage, Text: "no m5"})
	if q.Held != "no m5" || q.HeldBy != "shortage" {
		t.Errorf("held by %s: %s", q.HeldBy, q.Held)
	}
}

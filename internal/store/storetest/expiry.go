package storetest

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "expiry", tests: []suiteTest{
	{"live rows never vanish", testLiveStay},
	{"expired rows are whole or gone", testExpiredWhole},
	{"the history is kept for 24 h", testHistoryKept},
}})

// churn writes something every few minutes, since stores clear up behind writes.
func (w world) churn(t *testing.T, d time.Duration) {
	t.Helper()
	const step = 7 * time.Minute
	for passed := time.Duration(0); passed < d; passed += step {
		w.clock.advance(min(step, d-passed))
		w.report(t, lifecycle.Report{HostKey: "churn", HeartbeatAt: w.clock.Now()})
	}
}

func testLiveStay(t *testing.T, w world) {
	var soon, forever []func()
	for _, k := range kinds {
		expiring, staying := k.putLive(t, w)
		soon, forever = append(soon, expiring), append(forever, staying)
	}
	w.report(t, fullReport("a"))

	w.churn(t, time.Hour-time.Nanosecond)
	for _, check := range soon {
		check()
	}
	w.churn(t, 48*time.Hour)
	for _, check := range forever {
		check()
	}
	if got, err := w.Store.Reports(t.Context(), []string{"a"}); err != nil || len(got) != 1 {
		t.Errorf("report: got %v and error %v, want it", got, err)
	}
}

func testExpiredWhole(t *testing.T, w world) {
	var checks []func()
	for _, k := range kinds {
		checks = append(checks, k.putExpiring(t, w))
	}
	w.churn(t, time.Hour)
	for _, check := range checks {
		check()
	}
}

func testHistoryKept(t *testing.T, w world) {
	since := func(of lifecycle.PageOf) []string {
		t.Helper()
		return reasons(must(w.Store.EventsSince(t.Context(), of))(t).Items)
	}
	w.addEvents(t, fullEvent("old"))
	page := must(w.Store.EventsSince(t.Context(), lifecycle.PageOf{}))(t)
	w.churn(t, 24*time.Hour-time.Nanosecond)
	equal(t, "after just under 24 h", []string{"old"}, since(lifecycle.PageOf{}))

	// Whatever has vanished by then, a watcher's place stays good.
	w.churn(t, time.Hour)
	e := fullEvent("new")
	e.At = w.clock.Now()
	w.addEvents(t, e)
	w.churn(t, time.Hour)
	equal(t, "what came since", []string{"new"}, since(lifecycle.PageOf{After: page.Next}))
}

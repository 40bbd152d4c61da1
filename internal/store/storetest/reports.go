package storetest

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/storetest/rowtest"
)

var _ = add(group{name: "reports", tests: []suiteTest{
	{"a report comes back as it was written", testReportRoundTrip},
	{"a new report replaces the old one", testReportReplace},
	{"a batch leaves out who has none", testReportBatch},
	{"deleting is safe to repeat", testReportDelete},
	{"an agent reads its own record", testViewRecord},
	{"an agent writes its own report only", testViewReport},
}})

// fullReport has a value in every attribute.
func fullReport(hostKey string) lifecycle.Report {
	return lifecycle.Report{
		HostKey: hostKey, HeartbeatAt: start, BootID: "boot", AgentVersion: "1.2.3", Assignment: 3, Served: 4,
		Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseGitHub, Detail: "line 1\nline 2\t\"quoted\"",
		RunID: "17", Busy: true, RegisteredAt: start.Add(time.Second), Jobs: 5, RunnerVersion: "2.330.0", InterruptionAt: start.Add(2 * time.Minute), RebalanceAt: start.Add(time.Minute),
		Caches: "00000000000000aa:17:1772000000", CacheBytes: 18,
		AgentKey: "key", Statement: `{"payload": "e30="}`,
	}
}

func testReportRoundTrip(t *testing.T, w world) {
	want := map[string]lifecycle.Report{"a": fullReport("a"), "b": {HostKey: "b"}}
	rowtest.IsFull(t, "report", reflect.ValueOf(want["a"]))
	for _, p := range want {
		w.report(t, p)
	}
	got := must(w.Store.Reports(t.Context(), []string{"a", "b"}))(t)
	equal(t, "reports", want, got)
	rowtest.IsCanonical(t, got["a"])
}

func testReportReplace(t *testing.T, w world) {
	w.report(t, fullReport("a"))
	want := lifecycle.Report{HostKey: "a", HeartbeatAt: start.Add(time.Minute), Assignment: 4}
	w.report(t, want)
	got := must(w.Store.Reports(t.Context(), []string{"a"}))(t)
	equal(t, "reports", map[string]lifecycle.Report{"a": want}, got)
}

// testReportBatch asks for more keys than a DynamoDB batch takes (100).
func testReportBatch(t *testing.T, w world) {
	want := map[string]lifecycle.Report{}
	for _, key := range hostKeys(150) {
		want[key] = fullReport(key)
		w.report(t, want[key])
	}
	got := must(w.Store.Reports(t.Context(), slices.Concat([]string{"missing"}, hostKeys(150), []string{"host-0000"})))(t)
	equal(t, "reports", want, got)
	got, err := w.Store.Reports(t.Context(), nil)
	if err != nil || len(got) != 0 {
		t.Errorf("reports of no host: got %d and error %v, want none of either", len(got), err)
	}
}

func testReportDelete(t *testing.T, w world) {
	w.report(t, fullReport("a"))
	w.report(t, fullReport("b"))
	for range 2 {
		if err := w.Store.DeleteReport(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	got := all(t, 0, func(of lifecycle.PageOf) (reportPage, error) { return w.Store.AllReports(t.Context(), of) })
	equal(t, "reports", []lifecycle.Report{fullReport("b")}, got)
}

func testViewRecord(t *testing.T, w world) {
	instances.put(t, w, fullRecord("a"), fullRecord("b"))
	for _, consistent := range []bool{true, false} {
		got, at, err := w.ForHost("a").Record(t.Context(), consistent)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "record", fullRecord("a"), got)
		// A store without a clock of its own says nothing.
		if !at.IsZero() && !at.Equal(w.clock.Now()) {
			t.Errorf("time of the answer: got %v, want %v", at, w.clock.Now())
		}
		_, _, err = w.ForHost("unknown").Record(t.Context(), consistent)
		wantError(t, "record of an unknown host", err, lifecycle.ErrNotFound)
	}
}

func testViewReport(t *testing.T, w world) {
	w.report(t, fullReport("b"))
	forged := fullReport("b")
	forged.Signal = lifecycle.SignalRegOK
	if err := w.ForHost("a").PutReport(t.Context(), forged); err == nil {
		t.Error("the agent of a wrote the report of b")
	}
	unnamed := fullReport("")
	if err := w.ForHost("c").PutReport(t.Context(), unnamed); err != nil {
		t.Errorf("a report that leaves out its host: %v", err)
	}
	got := all(t, 0, func(of lifecycle.PageOf) (reportPage, error) { return w.Store.AllReports(t.Context(), of) })
	slices.SortFunc(got, func(a, b lifecycle.Report) int { return strings.Compare(a.HostKey, b.HostKey) })
	equal(t, "reports", []lifecycle.Report{fullReport("b"), fullReport("c")}, got)
}

package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var eventTests = []suiteTest{
	{"events come back as they were written, with ids", testEventRoundTrip},
	{"the history of a run is its own", testEventsOfRun},
	{"a watch begins after the last event", testLastEvent},
	{"a watcher goes on where it was", testEventsResume},
	{"a watcher misses nothing of 8 writers", testEventsConcurrent},
}

func fullEvent(reason string) lifecycle.Event {
	return lifecycle.Event{
		At: start, InstanceID: "i-a", Repository: repository, RunID: runID, RequestID: "request-1", Assignment: 3,
		Action: lifecycle.ActionReady, From: "created", To: "running", Reason: reason,
	}
}

func reasons(events []lifecycle.Event) []string {
	var found []string
	for _, e := range events {
		found = append(found, e.Reason)
	}
	return found
}

func testEventRoundTrip(t *testing.T, w world) {
	want := []lifecycle.Event{fullEvent("one"), {At: start, Action: lifecycle.ActionKeep, Reason: "two"}, fullEvent("three")}
	w.addEvents(t, want[:2]...)
	w.addEvents(t)
	w.addEvents(t, want[2])
	page, err := w.Store.EventsSince(t.Context(), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i, e := range page.Items {
		isUTC(t, "at", e.At)
		ids = append(ids, e.ID)
		page.Items[i].ID = ""
	}
	equal(t, "events", want, page.Items)
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) || slices.Contains(ids, "") {
		t.Errorf("ids: got %q, want increasing ones", ids)
	}
}

func testLastEvent(t *testing.T, w world) {
	since := func() (string, []string) {
		t.Helper()
		last, err := w.Store.LastEvent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.addEvents(t, fullEvent("after"))
		page, err := w.Store.EventsSince(t.Context(), lifecycle.PageOf{After: last})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, e := range page.Items {
			reasons = append(reasons, e.Reason)
		}
		return last, reasons
	}
	none, got := since()
	equal(t, "events after none", []string{"after"}, got)
	some, got := since()
	equal(t, "events after the last", []string{"after"}, got)
	if none == some {
		t.Errorf("the token %q did not move with a new event", some)
	}
}

func testEventsOfRun(t *testing.T, w world) {
	other, elsewhere, none := fullEvent("other run"), fullEvent("other repository"), fullEvent("no run")
	other.RunID, elsewhere.Repository, none.RunID = "47", "acme/other", ""
	w.addEvents(t, fullEvent("1"), other, fullEvent("2"), elsewhere, none, fullEvent("3"))
	got := all(t, 2, func(of lifecycle.PageOf) (eventPage, error) {
		return w.Store.EventsOfRun(t.Context(), repository, runID, of)
	})
	equal(t, "history", []string{"1", "2", "3"}, reasons(got))
	page, err := w.Store.EventsOfRun(t.Context(), repository, "unheard of", lifecycle.PageOf{})
	if err != nil || len(page.Items) != 0 || page.Next != "" {
		t.Errorf("history of an unknown run: got %+v and error %v, want nothing", page, err)
	}
}

func testEventsResume(t *testing.T, w world) {
	since := func(token string, limit int) ([]string, string) {
		t.Helper()
		page, err := w.Store.EventsSince(t.Context(), lifecycle.PageOf{After: token, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if page.Next == "" {
			t.Fatal("no token to go on from")
		}
		return reasons(page.Items), page.Next
	}
	got, begin := since("", 2)
	equal(t, "before there is anything", []string(nil), got)
	w.addEvents(t, fullEvent("1"), fullEvent("2"), fullEvent("3"))
	got, next := since(begin, 2)
	equal(t, "first page", []string{"1", "2"}, got)
	got, next = since(next, 2)
	equal(t, "second page", []string{"3"}, got)
	for range 2 {
		got, next = since(next, 2)
		equal(t, "nothing new", []string(nil), got)
	}
	w.addEvents(t, fullEvent("4"))
	got, _ = since(next, 2)
	equal(t, "what came since", []string{"4"}, got)
	got, _ = since(begin, 0)
	equal(t, "from the beginning again", []string{"1", "2", "3", "4"}, got)
}

// testEventsConcurrent: an id that becomes visible after a later one would be
// lost to a watcher that has passed it.
func testEventsConcurrent(t *testing.T, w world) {
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				pair := []lifecycle.Event{fullEvent(fmt.Sprintf("%d.%d a", i, n)), fullEvent(fmt.Sprintf("%d.%d b", i, n))}
				if err := w.Store.AddEvents(t.Context(), pair); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()

	seen := map[string]bool{}
	last, of := "", lifecycle.PageOf{Limit: 7}
	for done := false; ; {
		page, err := w.Store.EventsSince(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			if e.ID <= last || seen[e.Reason] {
				t.Fatalf("event %s (%s) came after %s", e.ID, e.Reason, last)
			}
			last, seen[e.Reason] = e.ID, true
		}
		of.After = page.Next
		if done && len(page.Items) == 0 {
			break
		}
		select {
		case <-written:
			done = true
		default:
		}
	}
	if want := 2 * writers * each; len(seen) != want {
		t.Errorf("saw %d events, want %d", len(seen), want)
	}
}

package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var _ = add(group{name: "events", tests: []suiteTest{
	{"events come back as they were written, with ids", testEventRoundTrip},
	{"the history of a run is its own", testEventsOfRun},
	{"the history of a host is its own", testEventsOfInstance},
	{"of a long history of a host the newest are told", testLongHistoryOfInstance},
	{"a history is gone through backwards", testHistoryBackwards},
	{"a watch begins after the last event", testLastEvent},
	{"a watcher goes on where it was", testEventsResume},
}, concurrent: []suiteTest{{"a watcher misses nothing of 8 writers", testEventsConcurrent}}})

func fullEvent(reason string) lifecycle.Event {
	return lifecycle.Event{
		At: start, InstanceID: "i-a", Repository: repository, RunID: runID, RequestID: "request-1", Pool: "default", Assignment: 3,
		Action: lifecycle.ActionReady, From: "created", To: "running", Reason: reason, JobID: 1 << 40, JobName: "build (1)", Since: start.Add(-time.Minute),
		Statement: `{"payload": "e30="}`, AgentKey: "key",
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
	page := must(w.Store.EventsSince(t.Context(), lifecycle.PageOf{}))(t)
	var ids []string
	for i, e := range page.Items {
		isUTC(t, "at", e.At)
		isUTC(t, "since", e.Since)
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
		last := must(w.Store.LastEvent(t.Context()))(t)
		w.addEvents(t, fullEvent("after"))
		page := must(w.Store.EventsSince(t.Context(), lifecycle.PageOf{After: last}))(t)
		return last, reasons(page.Items)
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

func testEventsOfInstance(t *testing.T, w world) {
	other, longer, request, noRun, early := fullEvent("other host"), fullEvent("longer id"), fullEvent("a request"), fullEvent("2"), fullEvent("too early")
	other.InstanceID, longer.InstanceID, request.InstanceID = "i-b", "i-ab", ""
	noRun.RunID, noRun.Repository, noRun.Sweep = "", "", "due"
	early.At = start.Add(-time.Nanosecond)
	w.addEvents(t, early, fullEvent("1"), other)
	w.addEvents(t, longer, noRun, request)
	w.addEvents(t, fullEvent("3"))
	got := w.historyOf(t, "i-a", start, 10)
	equal(t, "history", []string{"1", "2", "3"}, reasons(got.Events))
	if !got.From.IsZero() {
		t.Errorf("the history begins at %s, want all of it", got.From)
	}
	if noRun.ID = got.Events[1].ID; noRun.ID == "" {
		t.Error("an event has no id")
	}
	equal(t, "event", noRun, got.Events[1])
	whole := []string{"1", "other host", "longer id", "2", "a request", "3"}
	equal(t, "of the whole fleet", whole, reasons(w.historyOf(t, "", start, 10).Events))
	newest := w.historyOf(t, "", start, 2)
	equal(t, "the newest of the whole fleet", whole[4:], reasons(newest.Events))
	equal(t, "where they begin", newest.Events[0].At, newest.From)
	equal(t, "with what was earlier", []string{"too early", "1", "2", "3"}, reasons(w.historyOf(t, "i-a", time.Time{}, 10).Events))
	if got := w.historyOf(t, "i-unheard-of", start, 10); len(got.Events) != 0 || !got.From.IsZero() {
		t.Errorf("history of an unknown host: got %+v, want nothing", got)
	}
}

func testLongHistoryOfInstance(t *testing.T, w world) {
	for n := range 7 {
		e := fullEvent(fmt.Sprint(n))
		e.At = start.Add(time.Duration(n) * time.Minute)
		w.addEvents(t, e)
	}
	got := w.historyOf(t, "i-a", start, 3)
	equal(t, "the newest", []string{"4", "5", "6"}, reasons(got.Events))
	equal(t, "where it begins", start.Add(4*time.Minute), got.From)
	got = w.historyOf(t, "i-a", start.Add(4*time.Minute), 3)
	equal(t, "all there is", []string{"4", "5", "6"}, reasons(got.Events))
	equal(t, "where that begins", time.Time{}, got.From)
}

// testHistoryBackwards: events that are written late are where their times are, and at an end in the past nothing is left out.
func testHistoryBackwards(t *testing.T, w world) {
	for n := range 40 {
		late, e := fullEvent(fmt.Sprint("late ", n)), fullEvent(fmt.Sprint(n))
		e.At = start.Add(time.Duration(n) * time.Minute)
		late.At = e.At.Add(-5*time.Minute - time.Second)
		if n%2 == 0 {
			late.InstanceID = "i-b"
		}
		w.addEvents(t, late, e)
	}
	from := start.Add(-time.Hour)
	for _, id := range []string{"", "i-a"} {
		found, until := map[string]bool{}, time.Time{}
		for pages := 0; ; pages++ {
			h := must(w.Store.EventsOfInstance(t.Context(), id, from, until, 7))(t)
			for _, e := range h.Events {
				if found[e.Reason] || !until.IsZero() && !e.At.Before(until) {
					t.Errorf("%q until %s: %q is there", id, until, e.Reason)
				}
				found[e.Reason] = true
			}
			if until = h.From; until.IsZero() || pages == 40 {
				break
			}
		}
		if want := map[string]int{"": 80, "i-a": 60}[id]; len(found) != want {
			t.Errorf("%q: the pages have %d events, want %d", id, len(found), want)
		}
	}
	got := must(w.Store.EventsOfInstance(t.Context(), "", start.Add(9*time.Minute), start.Add(11*time.Minute), 10))(t)
	equal(t, "between two times", []string{"9", "late 15", "10", "late 16"}, reasons(got.Events))
}

func (w world) historyOf(t *testing.T, instanceID string, since time.Time, limit int) lifecycle.HostHistory {
	t.Helper()
	got := must(w.Store.EventsOfInstance(t.Context(), instanceID, since, time.Time{}, limit))(t)
	return got
}

func testEventsResume(t *testing.T, w world) {
	since := func(token string, limit int) ([]string, string) {
		t.Helper()
		page := must(w.Store.EventsSince(t.Context(), lifecycle.PageOf{After: token, Limit: limit}))(t)
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
	racepass.Goroutines(t)
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
		page := must(w.Store.EventsSince(t.Context(), of))(t)
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

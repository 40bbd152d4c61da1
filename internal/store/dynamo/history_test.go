package dynamo_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestAWatcherMissesNothingOfReplicas whose clocks differ by an hour.
func TestAWatcherMissesNothingOfReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const each = 15
	var wg sync.WaitGroup
	for i, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		s := dynamo.New(newClient(t, awstest.DynamoDB(t)), dynamo.Options{Now: func() time.Time { return time.Now().Add(skew) }})
		for j := range 2 {
			wg.Go(func() {
				for n := range each {
					pair := []lifecycle.Event{newEvent(fmt.Sprintf("%d.%d.%d a", i, j, n)), newEvent(fmt.Sprintf("%d.%d.%d b", i, j, n))}
					if err := s.AddEvents(t.Context(), pair); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()

	seen := map[string]bool{}
	last, of := "", lifecycle.PageOf{Limit: 3}
	for done := false; ; {
		page, err := w.EventsSince(t.Context(), of)
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
	if want := 3 * 2 * 2 * each; len(seen) != want {
		t.Errorf("saw %d events, want %d", len(seen), want)
	}
}

// TestTheFirstEventsOfTwoReplicas: one has found an empty history, and before it
// writes its first event another one does, whose clock is ahead.
func TestTheFirstEventsOfTwoReplicas(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	ahead := dynamo.New(w.client, dynamo.Options{Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	var between sync.Once
	var after lifecycle.PageOf
	w.proxy.Handle("dynamodb", "PutItem", func(rw http.ResponseWriter, r *http.Request, pass forward) {
		between.Do(func() {
			if err := ahead.AddEvents(t.Context(), []lifecycle.Event{newEvent("of the other")}); err != nil {
				t.Error(err)
			}
			var found []lifecycle.Event
			if found, after.After = everyEvent(t, ahead.EventsSince, lifecycle.PageOf{}); len(found) != 1 {
				t.Errorf("a watcher saw %v, want the event of the other", reasons(found))
			}
		})
		pass(r).Write(rw)
	})
	if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent("of the one")}); err != nil {
		t.Fatal(err)
	}
	found, _ := everyEvent(t, w.EventsSince, after)
	if diff := cmp.Diff([]string{"of the one"}, reasons(found)); diff != "" {
		t.Errorf("what the watcher saw then (-want +got):\n%s", diff)
	}
}

// TestHistoryCalls: alone, a replica needs one call for what it has to write about
// one run, and two for several.
func TestHistoryCalls(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	other := newEvent("of another run")
	other.RunID = "4712"
	add := func(added ...lifecycle.Event) []string {
		return w.since(t, func() error { return w.AddEvents(t.Context(), added) })
	}
	add(newEvent("the first looks for the end"))
	for _, test := range []struct {
		name  string
		added []lifecycle.Event
		want  []string
	}{
		{"of one run", []lifecycle.Event{newEvent("a"), newEvent("b")}, []string{"PutItem"}},
		{"of two runs", []lifecycle.Event{newEvent("a"), other, newEvent("b")}, []string{"PutItem", "BatchWriteItem"}},
		{"of none", []lifecycle.Event{{At: began}}, []string{"PutItem"}},
		{"nothing", nil, []string{}},
	} {
		if diff := cmp.Diff(test.want, add(test.added...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}

	// Another replica that writes in between costs a look for the end: at
	// first after the place was found taken, from then on before.
	s := w.replica(t)
	turns := [][]string{{"PutItem", "Query", "PutItem"}, {"Query", "PutItem"}, {"Query", "PutItem"}}
	for i, want := range turns {
		if err := s.AddEvents(t.Context(), []lifecycle.Event{newEvent("from elsewhere")}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, add(newEvent("a"))); diff != "" {
			t.Errorf("turn %d (-want +got):\n%s", i, diff)
		}
	}
	for i, want := range [][]string{{"Query", "PutItem"}, {"PutItem"}} {
		if diff := cmp.Diff(want, add(newEvent("alone"))); diff != "" {
			t.Errorf("alone again, %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestPagesEndWithinItems: events that were written together may come on
// several pages.
func TestPagesEndWithinItems(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	var want, ofRun []string
	for n := range 7 {
		var added []lifecycle.Event
		for i := range 2*n + 1 {
			e := newEvent(fmt.Sprintf("%d.%d", n, i))
			if n%2 == 1 && i%3 == 0 {
				e.RunID = "another"
			} else {
				ofRun = append(ofRun, e.Reason)
			}
			want = append(want, e.Reason)
			added = append(added, e)
		}
		if err := w.AddEvents(t.Context(), added); err != nil {
			t.Fatal(err)
		}
	}
	byRun := func(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
		return w.EventsOfRun(ctx, repository, runID, of)
	}
	ids := map[string]string{}
	for _, limit := range []int{1, 2, 3, 5, 8, 13, 100} {
		found, _ := everyEvent(t, w.EventsSince, lifecycle.PageOf{Limit: limit})
		if diff := cmp.Diff(want, reasons(found)); diff != "" {
			t.Errorf("%d a page (-want +got):\n%s", limit, diff)
		}
		for _, e := range found {
			ids[e.Reason] = e.ID
		}
		found, _ = everyEvent(t, byRun, lifecycle.PageOf{Limit: limit})
		if diff := cmp.Diff(ofRun, reasons(found)); diff != "" {
			t.Errorf("of the run, %d a page (-want +got):\n%s", limit, diff)
		}
		for _, e := range found {
			if ids[e.Reason] != e.ID {
				t.Errorf("event %s has the id %s of its run and %s in the whole", e.Reason, e.ID, ids[e.Reason])
			}
		}
	}
}

// TestManyEventsAtOnce: more than an item takes, by number and by size.
func TestManyEventsAtOnce(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	var added []lifecycle.Event
	for n := range 250 {
		e := newEvent(fmt.Sprintf("%03d ", n))
		if n%10 == 0 {
			e.Reason += strings.Repeat("x", 30<<10)
		}
		added = append(added, e)
	}
	calls := w.since(t, func() error { return w.AddEvents(t.Context(), added) })
	if len(calls) > 12 { // 250 events and 750 KiB
		t.Errorf("%d calls: %v", len(calls), calls)
	}
	for _, limit := range []int{7, 1000} {
		found, _ := everyEvent(t, w.EventsSince, lifecycle.PageOf{Limit: limit})
		if diff := cmp.Diff(reasons(added), reasons(found)); diff != "" {
			t.Errorf("%d a page (-want +got):\n%s", limit, diff)
		}
	}
}

// TestAnEmptyHistoryGoesOn: a day without an event, after which DynamoDB has
// removed all of it or only the last: a watcher's place stays good.
func TestAnEmptyHistoryGoesOn(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	for name, removed := range map[string]int{"all is removed": 3, "the last is removed": 1, "nothing is removed": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t, dynamo.Options{})
			now := began
			s := dynamo.New(client, dynamo.Options{Now: func() time.Time { return now }})
			var places []string
			for range 3 {
				if err := s.AddEvents(t.Context(), []lifecycle.Event{newEvent("old")}); err != nil {
					t.Fatal(err)
				}
			}
			found, after := everyEvent(t, s.EventsSince, lifecycle.PageOf{})
			for _, e := range found {
				places = append(places, e.ID[:16])
			}
			for _, place := range places[3-removed:] {
				table := "remuda-events"
				_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
					TableName: &table, Key: map[string]types.AttributeValue{"subject": text("fleet"), "id": text(place)},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(25 * time.Hour)
			// One who remembers the end, and one who does not.
			for i, replica := range []*dynamo.Store{s, dynamo.New(client, dynamo.Options{Now: func() time.Time { return now }})} {
				e := newEvent(fmt.Sprintf("new %d", i))
				e.At = now
				if err := replica.AddEvents(t.Context(), []lifecycle.Event{e}); err != nil {
					t.Fatal(err)
				}
			}
			found, _ = everyEvent(t, s.EventsSince, lifecycle.PageOf{After: after})
			if diff := cmp.Diff([]string{"new 0", "new 1"}, reasons(found)); diff != "" {
				t.Errorf("what came since (-want +got):\n%s", diff)
			}
		})
	}
}

package dynamo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// pagesOf makes each answer to a query end after so many items, as one of 1 MB does.
func (w world) pagesOf(t *testing.T, items int) {
	w.proxy.Handle("dynamodb", "Query", func(rw http.ResponseWriter, r *http.Request, ask forward) {
		var query map[string]any
		if err := json.NewDecoder(r.Body).Decode(&query); err != nil {
			t.Error(err)
		}
		query["Limit"] = items
		body, _ := json.Marshal(query) // it was JSON
		r.Body = io.NopCloser(bytes.NewReader(body))
		ask(r).Write(rw)
	})
}

// TestHistoryOfAHostIsBounded: of a long history only the part in question is read,
// and at most what a person waits for.
func TestHistoryOfAHostIsBounded(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.pagesOf(t, 2)
	const items, calls = 60, 24
	base := began.Add(-2 * time.Hour)
	for n := range items {
		other := newEvent("of another host")
		other.InstanceID, other.At = "i-other", base.Add(time.Duration(n)*time.Minute)
		mine := other
		mine.InstanceID, mine.Reason = "i-mine", fmt.Sprint(n)
		if err := w.AddEvents(t.Context(), []lifecycle.Event{other, mine}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		since time.Time
		until time.Time
		limit int
		want  []string
		cut   bool
		calls int
	}{
		// The last 3 and 10 minutes before them, since items are a little out of turn.
		{"of the last minutes", base.Add((items - 3) * time.Minute), time.Time{}, 10, []string{"57", "58", "59"}, false, 7},
		// The place of a time takes 8 reads, and 10 minutes behind it 6.
		{"until a time", base.Add((items - 43) * time.Minute), base.Add((items - 40) * time.Minute), 10, []string{"17", "18", "19"}, false, 22},
		{"the newest", time.Time{}, time.Time{}, 2, []string{"58", "59"}, true, 7},
		{"all that there is", time.Time{}, time.Time{}, 1000, nil, true, calls},
	} {
		var got lifecycle.HostHistory
		calls := w.since(t, func() (err error) {
			got, err = w.EventsOfInstance(t.Context(), "i-mine", test.since, test.until, test.limit)
			return err
		})
		if len(calls) > test.calls {
			t.Errorf("%s: %d calls, want at most %d", test.name, len(calls), test.calls)
		}
		if diff := cmp.Diff(test.want, reasons(got.Events)); test.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if n := len(got.Events); n == items || n == 0 || test.until.IsZero() && got.Events[n-1].Reason != "59" {
			t.Errorf("%s: %d events, want the newest", test.name, n)
		}
		if cut := !got.From.IsZero(); cut != test.cut || cut && got.From.After(got.Events[0].At) {
			t.Errorf("%s: begins at %s", test.name, got.From)
		}
	}
}

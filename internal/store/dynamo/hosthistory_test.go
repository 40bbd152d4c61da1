package dynamo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestHistoryOfAHostIsBounded: of a long history only the part in question is read,
// and at most what a person waits for.
func TestHistoryOfAHostIsBounded(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.ReadHistoryIn(3)
	const items = 20 // of 256 KB, so that a call of 1 MB reads 4 or 5 of them
	for n := range items {
		padding := newEvent(strings.Repeat("x", 250<<10))
		padding.InstanceID, padding.At = "i-other", began.Add(time.Duration(n)*time.Minute)
		mine := padding
		mine.InstanceID, mine.Reason = "i-mine", fmt.Sprint(n)
		if err := w.AddEvents(t.Context(), []lifecycle.Event{padding, mine}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		since time.Time
		limit int
		want  []string
		cut   bool
		calls int
	}{
		// The last 3 and 10 minutes before them, since items are a little out of turn.
		{"of the last minutes", began.Add((items - 3) * time.Minute), 10, []string{"17", "18", "19"}, false, 3},
		{"the newest", time.Time{}, 2, []string{"18", "19"}, true, 1},
		{"all that there is", time.Time{}, 1000, nil, true, 3},
	} {
		var got lifecycle.HostHistory
		calls := w.since(t, func() (err error) {
			got, err = w.EventsOfInstance(t.Context(), "i-mine", test.since, test.limit)
			return err
		})
		if len(calls) > test.calls {
			t.Errorf("%s: %d calls, want at most %d", test.name, len(calls), test.calls)
		}
		if diff := cmp.Diff(test.want, reasons(got.Events)); test.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if n := len(got.Events); n == items || n == 0 || got.Events[n-1].Reason != "19" {
			t.Errorf("%s: %d events, want the newest", test.name, n)
		}
		if cut := !got.From.IsZero(); cut != test.cut || cut && got.From.After(got.Events[0].At) {
			t.Errorf("%s: begins at %s", test.name, got.From)
		}
	}
}

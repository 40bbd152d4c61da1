package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Who says no time gets the events of the last hour. Where there are more than rows, the answer begins with the oldest that it has.
func TestHowFarBackEventsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
		if err := w.store.AddEvents(t.Context(), []lifecycle.Event{
			{ID: "1", At: ago(61 * time.Minute), Action: lifecycle.ActionLaunch},
			{ID: "2", At: ago(59 * time.Minute), Action: lifecycle.ActionLaunch},
			{ID: "3", At: ago(time.Minute), Action: lifecycle.ActionLaunch},
		}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			limit, events int
			from          time.Time
		}{{0, 2, ago(time.Hour)}, {2, 2, ago(time.Hour)}, {1, 1, ago(time.Minute)}} {
			got, err := w.ListEvents(t.Context(), &remudav1.ListEventsRequest{RowLimit: int32(tt.limit)})
			if err != nil || len(got.GetEvents()) != tt.events || !got.GetFromTime().AsTime().Equal(tt.from) {
				t.Errorf("of %d rows: %v (%v), want %d events from %s on", tt.limit, got, err, tt.events, tt.from)
			}
		}
	})
}

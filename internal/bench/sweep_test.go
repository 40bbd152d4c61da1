package bench

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	liveRecords = 100_000
	dueRecords  = 100
)

// BenchmarkDueSweep sweeps 100,000 live records, 100 of them due, and
// fails if it reads more than what is due.
func BenchmarkDueSweep(b *testing.B) {
	w := newWorld(b)
	now := time.Now()
	due := func(i int) time.Time {
		if i%(liveRecords/dueRecords) == 0 {
			return now.Add(-time.Second)
		}
		return now.Add(time.Hour)
	}
	w.fill(b, liveRecords, due)
	b.ResetTimer()
	var rows int64
	for range b.N {
		before := w.file.RowsRead()
		if err := w.fleet.Drive(b.Context(), w.fleet.NewDueSweep(), time.Second); err != nil {
			b.Fatal(err)
		}
		rows += w.file.RowsRead() - before
		b.StopTimer()
		w.makeDue(b, now)
		b.StartTimer()
	}
	perSweep := float64(rows) / float64(b.N)
	b.ReportMetric(perSweep, "rows/sweep")
	// Each due host costs its row in the listing and, for the write that
	// postpones it, none: its report and its request are absent here.
	if perSweep > 4*dueRecords {
		b.Errorf("a sweep read %.0f rows with %d due", perSweep, dueRecords)
	}
}

// makeDue undoes what a sweep did.
func (w *world) makeDue(b *testing.B, now time.Time) {
	b.Helper()
	for i := 0; i < liveRecords; i += liveRecords / dueRecords {
		r, err := w.store.Instance(b.Context(), hostID(i))
		if err != nil {
			b.Fatal(err)
		}
		if r.State != lifecycle.StateIdle || !r.DueAt.After(now) {
			b.Fatalf("the sweep left host %s %s, due %s", r.InstanceID, r.Condition(), r.DueAt)
		}
		r.DueAt = now.Add(-time.Second)
		if _, err := w.store.UpdateInstance(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

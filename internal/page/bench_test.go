package page_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
)

// BenchmarkPages has the time of each page of 10,000 hosts that have changed 260,000 times, in memory and in a file: the first look, and those
// that follow within seconds. Of a busy machine cpu-ms/op says more.
func BenchmarkPages(b *testing.B) {
	for _, where := range []string{"memory", "sqlite"} {
		b.Run(where, func(b *testing.B) {
			w := &world{t: b}
			w.inMemory()
			if where == "sqlite" {
				w.inFile()
			}
			w.serve(nil, func(*page.Options) {})
			w.fill(10_000)
			w.waits(hostile)
			for _, path := range paths {
				c := here()
				c.path = path
				b.Run("first look/"+path, func(b *testing.B) {
					timed(b, func() {
						w.restart()
						w.call(c)
					})
				})
				b.Run("next look/"+path, func(b *testing.B) {
					w.call(c)
					timed(b, func() { w.call(c) })
				})
			}
		})
	}
}

// inFile has a store in a file.
func (w *world) inFile() {
	s := sqlite.New(dbtest.Open(w.t, filepath.Join(w.t.TempDir(), "remuda.db"), db.Options{}))
	w.store = s.Store
	w.report = func(ctx context.Context, r lifecycle.Report) error { return s.ForHost(r.HostKey).PutReport(ctx, r) }
}

// timed also says how much of a processor a look takes.
func timed(b *testing.B, look func()) {
	b.ReportAllocs()
	began := processorTime()
	for b.Loop() {
		look()
	}
	b.ReportMetric(float64((processorTime()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails for no process
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

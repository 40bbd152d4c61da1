package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
)

// hosts is the size of the fleet that the benchmarks run on: the bar of the
// due sweep.
const hosts = 100_000

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func hostKey(n int) string { return fmt.Sprintf("host-%06d", n) }

// pooled is a host like most: it waits in the pool, and is due much later.
func pooled(n int) lifecycle.Record {
	return lifecycle.Record{
		HostKey: hostKey(n), InstanceID: fmt.Sprintf("i-%017x", n), Pool: "default", State: lifecycle.StateIdle,
		Repository: "acme/site", Assignment: 2, Version: 1, Threshold: began.Add(time.Hour), DueAt: began.Add(time.Hour),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x64", Zone: "local-a",
		},
		TrustKey: "acme/site", Uses: 1, TemplateVersion: "1", PooledAt: began,
		LaunchedAt: began, CreatedAt: began, UpdatedAt: began, Reason: "UD_REMOVE_REG_OK: clean",
	}
}

func claim(n int) lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: hostKey(n), Assignment: 2, TrustKey: "acme/site", Now: began, Margin: 30 * time.Second,
		RunID: "4711", RunAttempt: 1, Repository: "acme/site", RequestID: "request-1", MaxRuntime: time.Hour,
		Labels: []string{"fast"}, Threshold: began.Add(2 * time.Minute),
		Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "https://github.com/acme/site", Secret: "AABBCC"},
	}
}

// fill creates n hosts, many at once so that they share their commits.
func fill(tb testing.TB, s *sqlite.Store, n int, change func(n int, r *lifecycle.Record)) {
	tb.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				r := pooled(i)
				change(i, &r)
				if err := s.CreateInstance(context.Background(), r); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func unchanged(int, *lifecycle.Record) {}

func benchStore(b *testing.B, n int, change func(int, *lifecycle.Record)) (*sqlite.Store, *db.DB) {
	b.Helper()
	file := dbtest.Open(b, dbtest.File(b), db.Options{Now: func() time.Time { return began }})
	s := sqlite.New(file)
	fill(b, s, n, change)
	b.ReportAllocs()
	b.ResetTimer()
	return s, file
}

// BenchmarkClaim claims one host after the other.
func BenchmarkClaim(b *testing.B) {
	s, _ := benchStore(b, b.N, unchanged)
	for n := range b.N {
		if _, err := s.ClaimInstance(b.Context(), claim(n)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate updates one record again and again.
func BenchmarkUpdate(b *testing.B) {
	s, _ := benchStore(b, 1, unchanged)
	r := pooled(0)
	for range b.N {
		var err error
		if r, err = s.UpdateInstance(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead is what an agent does twice a second.
func BenchmarkRead(b *testing.B) {
	s, _ := benchStore(b, 1000, unchanged)
	view := s.ForHost(hostKey(500))
	for range b.N {
		if _, _, err := view.Record(b.Context(), true); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGroupCommit has 64 writers claim at once: their claims share commits.
func BenchmarkGroupCommit(b *testing.B) {
	s, _ := benchStore(b, b.N, unchanged)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < b.N; n = int(next.Add(1)) - 1 {
				if _, err := s.ClaimInstance(b.Context(), claim(n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkDue is the due query of a fleet of 100,000 hosts, 100 of them due.
func BenchmarkDue(b *testing.B) {
	s, file := benchStore(b, hosts, func(n int, r *lifecycle.Record) {
		if n%(hosts/100) == 7 {
			r.DueAt = began
		}
	})
	rows, pages := file.RowsRead(), pagesRead(b, file)
	for range b.N {
		page, err := s.DueInstances(b.Context(), began, lifecycle.PageOf{Limit: 1000})
		if err != nil || len(page.Items) != 100 {
			b.Fatalf("got %d hosts and error %v, want 100", len(page.Items), err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(file.RowsRead()-rows)/float64(b.N), "rows/op")
	b.ReportMetric(float64(pagesRead(b, file)-pages)/float64(b.N), "pages/op")
}

func pagesRead(tb testing.TB, file *db.DB) int64 {
	tb.Helper()
	pages, err := file.PagesRead(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return pages
}

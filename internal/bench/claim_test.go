package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// claim provisions one host for a run and says how long that took.
func (w *world) claim(ctx context.Context, run string) (time.Duration, error) {
	began := time.Now()
	got, err := w.client.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: run, RequestId: run})
	took := time.Since(began)
	if err == nil && got.GetReusedCount() != 1 {
		err = fmt.Errorf("run %s got %v, want one reused host", run, got)
	}
	return took, err
}

func (w *world) giveBack(ctx context.Context, run string) error {
	_, err := w.client.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true})
	return err
}

// BenchmarkClaimClosedLoop: 64 callers claim, give back and claim again.
func BenchmarkClaimClosedLoop(b *testing.B) {
	w := newWorld(b)
	w.fill(b, 256, nil)
	claimClosedLoop(b, w, 64)
}

// BenchmarkCallers is the same with so many callers, on the embedded store and on DynamoDB Local.
func BenchmarkCallers(b *testing.B) {
	stores := map[string]func(*testing.B, ...cache.Spec) *world{"sqlite": newWorld, "dynamodb": newDynamoWorld}
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		for _, callers := range []int{1, 8, 64, 256} {
			b.Run(fmt.Sprintf("store=%s/callers=%d", name, callers), func(b *testing.B) {
				w := stores[name](b)
				w.fill(b, 2*callers+8, nil)
				claimClosedLoop(b, w, callers)
			})
		}
	}
}

// BenchmarkPool is the same with 8 callers while so many hosts wait.
func BenchmarkPool(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("idle=%d", n), func(b *testing.B) {
			w := newWorld(b)
			w.fill(b, n, nil)
			claimClosedLoop(b, w, 8)
		})
	}
}

// BenchmarkHistory is the same with so many events in the history, which were written by many transactions and are in the file itself.
func BenchmarkHistory(b *testing.B) {
	for _, n := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			w := newWorldOn(b, withHistory(b, n))
			w.fill(b, 256, nil)
			claimClosedLoop(b, w, 8)
		})
	}
}

// BenchmarkClaimByCaches is the same in a pool with caches, whose hosts are chosen by what they have. All have the same.
func BenchmarkClaimByCaches(b *testing.B) {
	w := newWorld(b,
		cache.Spec{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 1 << 30}, cache.Spec{Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 30},
	)
	w.fill(b, 256, nil)
	claimClosedLoop(b, w, 64)
}

// claimClosedLoop has callers claim a host and give it back, b.N times in all.
func claimClosedLoop(b *testing.B, w *world, callers int) {
	b.Helper()
	calls := w.callsSoFar()
	var mu sync.Mutex
	var took []time.Duration
	closedLoop(b, callers, "claims/s", func(i int64) error {
		run := fmt.Sprint(i)
		d, err := w.claim(b.Context(), run)
		if err == nil {
			err = w.giveBack(b.Context(), run)
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
		return err
	})
	if w.calls != nil {
		b.ReportMetric(float64(w.callsSoFar()-calls)/float64(b.N), "calls/op")
	}
	reportLatency(b, took)
}

// callsSoFar are those of DynamoDB.
func (w *world) callsSoFar() int64 {
	if w.calls == nil {
		return 0
	}
	return w.calls.Load()
}

// BenchmarkClaimOpenLoop: a caller every 10 ms, whatever became of the last.
func BenchmarkClaimOpenLoop(b *testing.B) {
	w := newWorld(b)
	w.fill(b, 256, nil)
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range b.N {
		<-tick.C
		wg.Go(func() {
			run := fmt.Sprint(i)
			d, err := w.claim(b.Context(), run)
			if err == nil {
				err = w.giveBack(b.Context(), run)
			}
			if err != nil {
				b.Error(err)
			}
			mu.Lock()
			took = append(took, d)
			mu.Unlock()
		})
	}
	wg.Wait()
	reportLatency(b, took)
}

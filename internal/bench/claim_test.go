package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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
func BenchmarkClaimClosedLoop(b *testing.B) { claimClosedLoop(b, newWorld(b)) }

// BenchmarkClaimByCaches is the same in a pool with caches, whose hosts are chosen by what they have. All have the same.
func BenchmarkClaimByCaches(b *testing.B) {
	claimClosedLoop(b, newWorld(b,
		cache.Spec{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 1 << 30}, cache.Spec{Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 30},
	))
}

func claimClosedLoop(b *testing.B, w *world) {
	w.fill(b, 256, nil)
	used := cpu(b)
	var next atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				run := fmt.Sprint(i)
				d, err := w.claim(b.Context(), run)
				if err == nil {
					err = w.giveBack(b.Context(), run)
				}
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	reportLatency(b, took)
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

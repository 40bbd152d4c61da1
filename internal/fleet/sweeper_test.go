package fleet_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
)

// slowGitHub deletes registrations at the pace that internal/github keeps.
type slowGitHub struct{ *fakeGitHub }

func (g slowGitHub) DeleteRunner(ctx context.Context, repository string, id int64) error {
	time.Sleep(time.Minute / 70)
	return g.fakeGitHub.DeleteRunner(ctx, repository, id)
}

// dueSweeps notes the longest time between the ends of two due sweeps.
type dueSweeps struct {
	silent
	mu   sync.Mutex
	last time.Time
	gap  time.Duration
}

func (d *dueSweeps) Swept(sweep string, _ time.Duration, _ error) {
	if sweep != "due" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.last.IsZero() {
		d.gap = max(d.gap, time.Since(d.last))
	}
	d.last = time.Now()
}

// TestASlowSweepKeepsNoOther: while a hundred hosts are scaled down, at GitHub's
// pace, the others are looked at as ever; and it comes to its end.
func TestASlowSweepKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := &dueSweeps{}
		w := newWorld(t, scalingDown(policy.ScaleDown{}), func(o *fleet.Options) {
			o.GitHub, o.Observer = slowGitHub{o.GitHub.(*fakeGitHub)}, due
		})
		w.idleHosts(t, repository, "7", 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		time.Sleep(6 * time.Minute)
		due.mu.Lock()
		defer due.mu.Unlock()
		if due.gap == 0 || due.gap > 10*time.Second {
			t.Errorf("no due sweep for %s", due.gap)
		}
		if left := len(w.github.names()); left > 0 {
			t.Errorf("%d registrations are left", left)
		}
	})
}

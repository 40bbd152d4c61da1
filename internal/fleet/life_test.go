package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// sweepOnceItWaits has f sweep once the test waits for the first time: the clock of a
// bubble stands still until then. What the test sets before holds for the first sweep.
func sweepOnceItWaits(ctx context.Context, f *fleet.Fleet) {
	select {
	case <-time.After(time.Nanosecond):
		f.Sweep(ctx)
	case <-ctx.Done():
	}
}

// inBubble runs a test with agents and sweeps going on in the background.
func inBubble(t *testing.T, test func(ctx context.Context, t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		go sweepOnceItWaits(ctx, w.fleet)
		test(ctx, t, w)
		cancel()
		synctest.Wait()
	})
}

func TestColdWarmExpire(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		cold := w.mustProvision(ctx, demand("1", "a", 3))
		if len(cold) != 3 {
			t.Fatalf("cold: %d hosts, want 3", len(cold))
		}
		for _, r := range cold {
			if r.State != lifecycle.StateRunning || r.RunID != "1" || r.Assignment != 1 || r.Registration != nil {
				t.Errorf("cold host: %+v", r)
			}
		}
		released := w.release(ctx, "1", true)
		if released.Pooled() != 3 || released.Failed() != 0 || len(released.Instances()) != 3 {
			t.Fatalf("released %d, pooled %d, failed %d", len(released.Instances()), released.Pooled(), released.Failed())
		}
		p, err := w.provision(ctx, demand("2", "b", 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, taken := range p.Request().Taken {
			if !taken.Reused {
				t.Errorf("warm: host %s is new", taken.InstanceID)
			}
		}
		for _, r := range p.Instances() {
			if r.Assignment != 3 || r.Uses != 2 {
				t.Errorf("warm host: assignment %d, uses %d", r.Assignment, r.Uses)
			}
		}
		w.release(ctx, "2", true)
		time.Sleep(6 * time.Minute)
		if n := w.machines(); n != 0 {
			t.Errorf("%d machines are left after the idle time", n)
		}
		if names := w.github.names(); len(names) != 0 {
			t.Errorf("registrations are left: %v", names)
		}
		for _, r := range w.records() {
			if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() || r.ExpiresAt.IsZero() {
				t.Errorf("left over: %s %s due %s: %s", r.InstanceID, r.Condition(), r.DueAt, r.Reason)
			}
		}
	})
}

package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestAMachineThatDiesWhileItBootsIsReplaced, long before its threshold.
func TestAMachineThatDiesWhileItBootsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		go func() {
			time.Sleep(2 * time.Second) // no agent has reported yet
			for _, r := range w.records() {
				w.compute.Kill(r.InstanceID)
				w.set(func() { w.deaf[r.HostKey] = true })
			}
			w.agents(ctx)
		}()
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, r := range hosts {
			if r.State != lifecycle.StateRunning {
				t.Errorf("%s is %s", r.InstanceID, r.State)
			}
		}
	})
}

// TestARefreshEndsNoMachineThatTheCloudDoesNotKnowYet, nor does any sweep.
func TestARefreshEndsNoMachineThatTheCloudDoesNotKnowYet(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = &late{o.Compute, time.Now().Add(time.Minute)} })
		if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		if n := len(w.records(lifecycle.StateRunning)); n != 2 {
			t.Errorf("%d hosts run, want 2", n)
		}
	})
}

// late is a cloud that knows nothing of its machines for a while.
type late struct {
	fleet.Compute
	until time.Time
}

func (l *late) Describe(ctx context.Context, ids []string) ([]lifecycle.Machine, error) {
	if time.Now().After(l.until) {
		return l.Compute.Describe(ctx, ids)
	}
	var unknown []lifecycle.Machine
	for _, id := range ids {
		unknown = append(unknown, lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone})
	}
	return unknown, nil
}

func TestAMachineThatTheCloudDoesNotKnowYetIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) { o.Compute = &late{o.Compute, time.Now().Add(time.Minute)} })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			time.Sleep(50 * time.Second)
			w.agents(ctx)
		}()
		w.mustProvision(ctx, demand("1", "a", 2))
		if n := w.machines(); n != 2 {
			t.Errorf("%d machines were launched, want 2", n)
		}
	})
}

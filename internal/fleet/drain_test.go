package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestDrainOfAHost: a host with a run serves it to its end, goes to no other run, and ends. One that waits ends at once.
func TestDrainOfAHost(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		taken := w.mustProvision(ctx, demand("1", "a", 1))[0]
		waiting := w.mustProvision(ctx, demand("2", "b", 1))[0]
		w.release(ctx, "2", true)
		w.set(func() { w.busy[taken.HostKey] = true })
		for _, r := range []lifecycle.Record{taken, waiting} {
			if n, err := w.fleet.Drain(ctx, fleet.DrainTarget{InstanceID: r.InstanceID}, "a new rack", "CN=ops", time.Now()); err != nil || n.Now != 1 || n.Before != 0 {
				t.Fatalf("drain %s: %+v, %v", r.InstanceID, n, err)
			}
		}
		time.Sleep(time.Minute)
		if r := w.record(waiting.HostKey); r.State != lifecycle.StateTerminated || r.Reason != "drained by CN=ops: a new rack" {
			t.Errorf("the host without a run is %s: %s", r.State, r.Reason)
		}
		if r := w.record(taken.HostKey); r.State != lifecycle.StateRunning || !r.Retiring {
			t.Fatalf("the host with a job is %s, retiring %t: %s", r.State, r.Retiring, r.Reason)
		}
		if n, err := w.fleet.Drain(ctx, fleet.DrainTarget{InstanceID: taken.InstanceID}, "again", "CN=ops", time.Now()); err != nil || n.Now != 0 || n.Before != 1 {
			t.Errorf("a repeated drain: %+v, %v", n, err)
		}
		w.set(func() { delete(w.busy, taken.HostKey) })
		w.release(ctx, "1", true)
		if r := w.record(taken.HostKey); r.State != lifecycle.StateTerminated || r.Reason != "drained by CN=ops: a new rack" {
			t.Errorf("after its run the host is %s: %s", r.State, r.Reason)
		}
		var state *fleet.StateError
		if _, err := w.fleet.Drain(ctx, fleet.DrainTarget{InstanceID: taken.InstanceID}, "", "CN=ops", time.Now()); !errors.As(err, &state) {
			t.Errorf("drain an ended host: %v, want a StateError", err)
		}
		if _, err := w.fleet.Drain(ctx, fleet.DrainTarget{InstanceID: "i-none"}, "", "CN=ops", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("drain an unknown host: %v, want ErrNotFound", err)
		}
	})
}

// TestDrainOfAPool: the hosts that the pool has leave, those of other pools and those that come later stay.
func TestDrainOfAPool(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 3))
		other := demand("2", "b", 1)
		other.Spec.Pool = "once"
		w.mustProvision(ctx, other)
		if n, err := w.fleet.Drain(ctx, fleet.DrainTarget{Pool: "default"}, "", "CN=ops", time.Now()); err != nil || n.Now != 3 {
			t.Fatalf("drain the pool: %+v, %v", n, err)
		}
		w.mustProvision(ctx, demand("3", "c", 1))
		retiring := map[string]int{}
		for _, r := range w.records() {
			if r.Retiring {
				retiring[r.RunID]++
			}
		}
		if len(retiring) != 1 || retiring["1"] != 3 {
			t.Errorf("retiring hosts by run: %v, want the three of run 1", retiring)
		}
		if n, err := w.fleet.Drain(ctx, fleet.DrainTarget{}, "", "CN=ops", time.Now()); err != nil || n.Now != 2 || n.Before != 3 {
			t.Errorf("drain all: %+v, %v, want 2 and 3", n, err)
		}
		if _, err := w.fleet.Drain(ctx, fleet.DrainTarget{Pool: "none"}, "", "CN=ops", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("drain an unknown pool: %v, want ErrNotFound", err)
		}
	})
}

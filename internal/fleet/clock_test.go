package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// withClock has the clock of a replica differ from that of the store.
func withClock(offset *atomic.Int64, due *dueSweeps) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.ClockOffset, o.Observer = func() time.Duration { return time.Duration(offset.Load()) }, due
	}
}

// lately reports whether the replica has looked at due hosts lately.
func (d *dueSweeps) lately() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.last.IsZero() && time.Since(d.last) < 30*time.Second
}

// The deadlines of these hosts are past by the clock of this replica, which the store shows to be hours ahead: it ends none of them, gives the
// sweeps to a replica whose clock is right, and does its work again once its own is.
func TestAReplicaWithAWrongClockEndsNothing(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		w.set(func() {
			for _, h := range hosts {
				w.busy[h.HostKey] = true
			}
		})
		var offset atomic.Int64
		due := &dueSweeps{}
		wrong := w.newFleet("b", withClock(&offset, due))
		go wrong.Sweep(ctx)
		time.Sleep(time.Minute)
		if !due.lately() {
			t.Fatal("with a right clock it does not sweep")
		}
		offset.Store(int64(-7 * time.Hour))
		time.Sleep(7 * time.Hour) // the replica cannot tell that this time has come
		if n := len(w.records(lifecycle.StateRunning)); n != len(hosts) || due.lately() {
			t.Errorf("%d of %d hosts are left; it sweeps: %t", n, len(hosts), due.lately())
		}
		w.fleet = wrong
		for name, do := range map[string]func() error{
			"Provision": func() error { _, err := w.provision(ctx, demand("2", "b", 1)); return err },
			"Refresh":   func() error { return wrong.Drive(ctx, wrong.NewRefresh(false), patience) },
			"Hold":      func() error { _, err := wrong.Hold(ctx, hosts[0].InstanceID, time.Hour, "", time.Now()); return err },
			"HoldFleet": func() error { _, _, err := wrong.HoldFleet(ctx, time.Hour, "", "ops", time.Now()); return err },
		} {
			if err := do(); !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "the clock of this machine is 7h0m0s ahead of that of AWS") {
				t.Errorf("%s: %v", name, err)
			}
		}
		offset.Store(int64(time.Second))
		time.Sleep(2 * time.Minute)
		if n := len(w.records(lifecycle.StateRunning)); n != 0 || !due.lately() {
			t.Errorf("its clock is right again, and %d hosts outlive their maximum runtime; it sweeps: %t", n, due.lately())
		}
	})
}

// Another replica takes the sweeps over as soon as their lease runs out.
func TestAReplicaWithARightClockTakesTheSweepsOver(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		var offset atomic.Int64
		due := &dueSweeps{}
		wrong := w.newFleet("b", withClock(&offset, due))
		go wrong.Sweep(ctx)
		time.Sleep(time.Minute)
		others := &dueSweeps{}
		go w.newFleet("c", func(o *fleet.Options) { o.Observer = others }).Sweep(ctx)
		time.Sleep(time.Minute)
		if others.lately() || !due.lately() {
			t.Fatal("the first replica does not hold the lease")
		}
		offset.Store(int64(time.Hour))
		time.Sleep(2 * time.Minute)
		if !others.lately() || due.lately() {
			t.Errorf("the right one sweeps: %t, the wrong one: %t", others.lately(), due.lately())
		}
	})
}

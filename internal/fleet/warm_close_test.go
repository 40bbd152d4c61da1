package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// withoutPool takes the default pool out of the configuration.
func withoutPool(o *fleet.Options) { delete(o.Pools, "default") }

// A pool that loses its warm hosts by the configuration, or is gone from it, loses
// the fresh ones that it has within minutes; its row goes after them, and what was
// launched just before is adopted first.
func TestWarmPoolsThatAreNoMore(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsAreReplacedBeforeTheClaimMargin")
	tests := map[string]func(*fleet.Options){
		"without warm hosts": func(*fleet.Options) {},
		"removed":            withoutPool,
	}
	for name, change := range tests {
		for _, cut := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", a launch cut short"}[cut], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, withWarm(warmPool(2)))
					ctx, cancel := context.WithCancel(t.Context())
					defer synctest.Wait()
					defer cancel()
					go w.agents(ctx)
					before := w.fleet
					if cut {
						f := &fate{at: 2, kill: func() {}}
						before = w.newFleet("first", withWarm(warmPool(2)), func(o *fleet.Options) {
							o.Store, o.Compute = mortalStore{w.store, f}, mortalCompute{w.compute, f}
						})
					}
					_ = before.Drive(ctx, before.NewWarmSweep(), 0)
					if w.machines() != 2 {
						t.Fatalf("%d machines, the test needs 2", w.machines())
					}
					go w.newFleet("b", change).Sweep(ctx)
					w.until("no machine is left", 7*time.Minute, func() bool { return w.machines() == 0 })
					time.Sleep(10 * time.Minute)
					if n := len(w.records()); n != 2 {
						t.Errorf("%d hosts had a record, want both", n)
					}
					for _, r := range w.records() {
						if r.Reason != "not wanted in warm pool default: the configuration has no warm hosts for it any more" {
							t.Errorf("host %s ended since %q", r.InstanceID, r.Reason)
						}
					}
					q, err := w.store.Request(ctx, warmrequest.Repository, "warm:default", "warm:default")
					if err != nil || !q.DueAt.IsZero() || q.ExpiresAt.IsZero() || q.Launch != nil {
						t.Errorf("the row is due at %s and expires at %s, launch %v, error %v", q.DueAt, q.ExpiresAt, q.Launch, err)
					}
					if w.told(lifecycle.ReasonWarmRemoved) == 0 {
						t.Error("the history does not say that the pool has no warm hosts any more")
					}
					// It is as ever once the pool has warm hosts again.
					if err := before.Drive(ctx, w.fleet.NewWarmSweep(), patience); err != nil {
						t.Fatal(err)
					}
					q, err = w.store.Request(ctx, warmrequest.Repository, "warm:default", "warm:default")
					if w.machines() != 2 || err != nil || q.DueAt.IsZero() || !q.ExpiresAt.IsZero() {
						t.Errorf("again: %d machines; the row is due at %s and expires at %s, error %v", w.machines(), q.DueAt, q.ExpiresAt, err)
					}
				})
			})
		}
	}
}

// While the fleet is held they stay, and go after it.
func TestWarmPoolThatIsNoMoreInAHeldFleet(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsAreReplacedBeforeTheClaimMargin")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWarm(warmPool(2)))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		if err := w.fleet.Drive(ctx, w.fleet.NewWarmSweep(), patience); err != nil {
			t.Fatal(err)
		}
		w.hold(ctx, w.fleet, time.Hour)
		go w.newFleet("b").Sweep(ctx)
		time.Sleep(30 * time.Minute)
		if n := len(w.fresh()); n != 2 {
			t.Errorf("%d fresh hosts in a held fleet, want both", n)
		}
		w.hold(ctx, w.fleet, 0)
		w.until("no machine is left", 7*time.Minute, func() bool { return w.machines() == 0 })
	})
}

// The row of a pool that has warm hosts is never due: its own sweep sees to that,
// and another replica's due sweep leaves it alone.
func TestWarmRowIsNotDueWhileItIsSwept(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(1)), func(ctx context.Context, t *testing.T, w *world) {
		for end := time.Now().Add(30 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Second) {
			due, err := w.store.DueRequests(ctx, time.Now(), lifecycle.PageOf{})
			if err != nil || len(due.Items) > 0 {
				t.Fatalf("due: %+v, error %v", due.Items, err)
			}
		}
	})
}

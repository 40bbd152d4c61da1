package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// In a held fleet warm hosts stay beyond their time, and none is launched in their
// place for as long; after it the pool is what it was.
func TestWarmHostsOfAHeldFleet(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsAreReplacedBeforeTheClaimMargin")
	inWarmBubble(t, withWarm(warmPool(2)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		w.hold(ctx, w.fleet, 10*time.Hour)
		for end := time.Now().Add(9 * time.Hour); time.Now().Before(end); time.Sleep(time.Minute) {
			if n := w.machines(); n != 2 {
				t.Fatalf("%d machines, want the two that there were", n)
			}
		}
		w.hold(ctx, w.fleet, 0)
		w.until("two fresh hosts again", 5*time.Minute, func() bool { return len(w.fresh()) == 2 && w.machines() == 2 })
	})
}

// Nor is a host that did not come up launched again while the hold keeps it.
func TestWarmHostsOfAHeldFleetThatDoNotComeUp(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsThatDoNotComeUp")
	inWarmBubble(t, withWarm(warmPool(1)), func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.broken["*"] = lifecycle.CauseHost })
		w.hold(ctx, w.fleet, 10*time.Hour)
		for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); time.Sleep(time.Minute) {
			if n := w.machines(); n > 1 {
				t.Fatalf("%d machines, want the one that the hold keeps", n)
			}
		}
	})
}

// What is not wanted any more is not marked to leave while the fleet is held.
func TestWarmHostsNotWantedInAHeldFleet(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(2)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		w.hold(ctx, w.fleet, time.Hour)
		less := w.newFleet("b", withWarm(warmPool(1)))
		if err := less.Drive(ctx, less.NewWarmSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if n := len(w.fresh()); n != 2 {
			t.Errorf("%d fresh hosts are left to be claimed of two in a held fleet", n)
		}
		w.hold(ctx, w.fleet, 0)
		if err := less.Drive(ctx, less.NewWarmSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if n := len(w.fresh()); n != 1 {
			t.Errorf("%d fresh hosts after the hold, want 1", n)
		}
	})
}

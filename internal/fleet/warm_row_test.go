package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
)

// warmRow is the row of the launches of the default pool.
func (w *world) warmRow(ctx context.Context) lifecycle.Request {
	w.t.Helper()
	q, err := w.store.Request(ctx, warmrequest.Repository, "warm:default", "warm:default")
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// The warm hosts of a pool are of the pool, also where what they are launched with names none.
func TestWarmHostsAreOfTheirPool(t *testing.T) {
	unnamed := func(p *fleet.WarmPool) { p.Spec.Pool = "" }
	inWarmBubble(t, withWarm(warmPool(1, unnamed)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("a fresh host", time.Minute, w.hasFresh(1))
		if of, row := w.fresh()[0].Pool, w.warmRow(ctx).Spec.Pool; of != "default" || row != "default" {
			t.Errorf("a host of pool %q by a row of pool %q", of, row)
		}
	})
}

// A host that comes up ends the pauses after those that did not: it waits for a run, and is proof enough.
func TestAWarmHostThatComesUpEndsThePauses(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(1)), func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.broken["*"] = lifecycle.CauseHost })
		w.until("two have failed", time.Hour, func() bool { return len(w.records()) > 0 && w.warmRow(ctx).Failures == 2 })
		w.set(func() { delete(w.broken, "*") })
		w.until("a fresh host", time.Hour, w.hasFresh(1))
		time.Sleep(time.Minute) // until the next sweep has seen it
		if q := w.warmRow(ctx); q.Failures != 0 || !q.NotBefore.IsZero() {
			t.Errorf("%d failures, and none is launched before %s", q.Failures, q.NotBefore)
		}
	})
}

// A sweep that finds its pool full looks whether all who have the room need it, and the next one launches into what is left. In a pool with room it
// does not look.
func TestRoomOfAFullPoolThatIsNotNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		maximum int
		looked  bool
	}{"full": {1, true}, "with room": {2, false}} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, withWarm(warmPool(1), func(p *fleet.Pool) { p.Maximum = new(c.maximum) }), func(ctx context.Context, t *testing.T, w *world) {
				left := ledger.Quota{Name: ofPool}.With(ledger.Reservation{Repository: repository, RunID: "9", RequestID: "lost", Launch: 1, Hosts: 1, At: time.Now().Add(-time.Hour)})
				if _, err := w.store.UpdateQuotaLedger(ctx, left); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					w.sweepOnce(ctx, w.fleet.NewWarmSweep())
				}
				a, err := w.store.QuotaLedger(ctx, ofPool)
				if err != nil || a.AuditedAt.IsZero() == c.looked || w.machines() != 1 {
					t.Errorf("%d machines, want one; looked through %s, want that it is: %t (%v)", w.machines(), a.AuditedAt, c.looked, err)
				}
			})
		})
	}
}

// The row has what a launch was short of until one is not: with that all instance types are tried again.
func TestTheRowHasWhatAWarmLaunchWasShortOf(t *testing.T) {
	inWarmBubble(t, func(o *fleet.Options) { withWarm(warmPool(2))(o) }, func(ctx context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 1)
		w.until("the one that there is", time.Minute, w.hasFresh(1))
		if q := w.warmRow(ctx); q.Shortage == "" {
			t.Error("a launch was short, and the row does not say so")
		}
		w.compute.SetCapacity("*", 9)
		w.until("the second once there is room", 2*time.Minute, w.hasFresh(2))
		if q := w.warmRow(ctx); q.Shortage != "" {
			t.Errorf("no launch was short any more, and the row says %q", q.Shortage)
		}
	})
}

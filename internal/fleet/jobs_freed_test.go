package fleet_test

import (
	"context"
	"errors"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
)

// refusesEnds is a store that refuses some writes that end a slot.
type refusesEnds struct {
	fleet.JobStore
	left atomic.Int32
}

func (s *refusesEnds) UpdateSlotTable(ctx context.Context, next slots.Table) (slots.Table, error) {
	stored, err := s.SlotTable(ctx, next.Pool)
	if err != nil {
		return next, err
	}
	for _, slot := range stored.Open {
		stays := func(of slots.Slot) bool { return of.Number == slot.Number }
		if !slices.ContainsFunc(next.Open, stays) && s.left.Add(-1) >= 0 {
			return next, errors.New("refused")
		}
	}
	return s.JobStore.UpdateSlotTable(ctx, next)
}

// TestAHandedBackHostIsLookedAtAgain: a reconciliation that fails leaves the hosts that were handed back to the next, so that the job that waits
// does not wait until all hosts are looked at.
func TestAHandedBackHostIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &refusesEnds{}
		w := jobWorld(t, 1, func(o *fleet.JobOptions) { store.JobStore, o.Store = o.Store, store })
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 65*time.Second)
			w.until("the first runs", 20*time.Second, w.ran(1))
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Second)
			store.left.Store(1)
			w.until("the first is over", 2*time.Minute, func() bool { return store.left.Load() < 1 })
			begin := time.Now()
			w.until("the second runs", 2*time.Minute, w.ran(2))
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("the second job ran %s after the first, and not with the next reconciliation", took)
			}
		})
	})
}

// countedTables counts how often the slot tables are read. While they are away no read answers.
type countedTables struct {
	fleet.JobStore
	reads atomic.Int32
	away  atomic.Bool
}

func (s *countedTables) SlotTable(ctx context.Context, pool string) (slots.Table, error) {
	s.reads.Add(1)
	if s.away.Load() {
		return slots.Table{}, &lifecycle.UnavailableError{What: "slot tables", Err: context.DeadlineExceeded}
	}
	return s.JobStore.SlotTable(ctx, pool)
}

// servingOnly is a world that serves jobs and has no sweeps.
func servingOnly(t *testing.T, store *countedTables, do func(context.Context, *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 2, func(o *fleet.JobOptions) { store.JobStore, o.Store = o.Store, store })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.hub.live(ctx)
		go w.fleet.ServeJobs(ctx)
		synctest.Wait()
		do(ctx, w)
	})
}

// TestAPoolIsReconciledAfterAnOutage: a reconciliation that was given up keeps no later one from its start.
func TestAPoolIsReconciledAfterAnOutage(t *testing.T) {
	store := &countedTables{}
	servingOnly(t, store, func(ctx context.Context, w *world) {
		store.away.Store(true)
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
		time.Sleep(2 * time.Minute)
		store.away.Store(false)
		w.hub.queue(ctx, poolJob(2, time.Now()), time.Second)
		w.until("both jobs run", 20*time.Second, w.ran(1, 2))
	})
}

// TestTheHostOfARunReconcilesNoPool: a host of a job pool that a run had is no host of a slot.
func TestTheHostOfARunReconcilesNoPool(t *testing.T) {
	store := &countedTables{}
	servingOnly(t, store, func(ctx context.Context, w *world) {
		d := demand("5", "a", 1)
		d.Spec.Pool = jobPool
		w.mustProvision(ctx, d)
		w.release(ctx, "5", true)
		synctest.Wait()
		if n := store.reads.Load(); n != 0 {
			w.t.Errorf("the slot table was read %d times", n)
		}
	})
}

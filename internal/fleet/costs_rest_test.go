package fleet_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// neverPools is a store that refuses the record of a pooled host and takes the row of its cycle, as after a crash between the two writes.
type neverPools struct {
	fleet.Store
	on   atomic.Bool
	kept atomic.Int32
}

func (s *neverPools) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if s.on.Load() && r.Pooled() {
		return r, fmt.Errorf("update: %w", lifecycle.ErrUnavailable)
	}
	return s.Store.UpdateInstance(ctx, r)
}

func (s *neverPools) CreateReading(ctx context.Context, r meter.Reading) error {
	err := s.Store.CreateReading(ctx, r)
	if err == nil {
		s.kept.Add(1)
	}
	return err
}

// TestCostOfAHostThatEndsInPlaceOfItsPool: its cycle was kept when it was clean, and the host was ended before its record said so. The rest of its
// life is kept when it is forgotten.
func TestCostOfAHostThatEndsInPlaceOfItsPool(t *testing.T) {
	store, seen := &neverPools{}, &paid{}
	options := func(o *fleet.Options) {
		priced(o)
		o.Observer = seen
		store.Store, o.Store = o.Store, store
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		began := time.Now()
		h := w.mustProvision(ctx, demand("1", "a", 1))[0]
		go w.fleet.Sweep(ctx)
		time.Sleep(10 * time.Minute)
		store.on.Store(true)
		w.release(ctx, "1", false)
		w.until("its cycle is kept", time.Minute, func() bool { return store.kept.Load() == 1 })
		time.Sleep(time.Minute)
		if _, err := w.fleet.Terminate(ctx, h.InstanceID, "the test", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.until("its rest is kept", time.Hour, func() bool { return store.kept.Load() == 2 })
		report := w.costs(ctx, fleet.CostQuery{By: fleet.CostByPool, Since: meter.DayOf(began), Until: meter.DayOf(time.Now())})
		lived := w.machineTime([]string{h.InstanceID})
		if diff := report.Total.Sum() - lived; diff.Abs() > time.Second {
			t.Errorf("the machine lived for %s, and the report has %s", lived, report.Total.Sum())
		}
		seen.want(t, report)
	})
}

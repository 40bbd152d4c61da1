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
	store "github.com/remuda-ci/remuda/internal/store/memory"
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

// betweenReads does something after the first page of live hosts, and after the first page of hosts that are due.
type betweenReads struct {
	*store.Store
	afterLive, afterDue func()
}

func (s *betweenReads) ListInstances(ctx context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	got, err := s.Store.ListInstances(ctx, f, page)
	if do := s.afterLive; do != nil {
		s.afterLive = nil
		do()
	}
	return got, err
}

func (s *betweenReads) DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	got, err := s.Store.DueInstances(ctx, now, page)
	if do := s.afterDue; do != nil {
		s.afterDue = nil
		do()
	}
	return got, err
}

// A host that ends is in each report once: before its record ends, while its machine ends, after that, and if any of these happens during the read.
func TestCostOfAHostWhileItsMachineEnds(t *testing.T) {
	end := func(ctx context.Context, w *world, host lifecycle.Record) func() {
		return func() {
			if _, err := w.fleet.Terminate(ctx, host.InstanceID, "the test", time.Now()); err != nil {
				w.t.Error(err)
			}
		}
	}
	gone := func(ctx context.Context, w *world, host lifecycle.Record) func() {
		return func() {
			w.sweepOnce(ctx, w.fleet.NewDueSweep()) // which ends the machine
			time.Sleep(time.Minute)
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			if r := w.record(host.HostKey); !r.DueAt.IsZero() {
				w.t.Errorf("the machine is not known to be gone: %+v", r)
			}
		}
	}
	for name, c := range map[string]struct{ ends, isGone string }{
		"before the read":      {"before", ""},
		"gone before the read": {"before", "before"},
		"after the live hosts": {"live", ""},
		"gone after those due": {"before", "due"},
		"both during the read": {"live", "due"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, priced, func(ctx context.Context, t *testing.T, w *world) {
				host := w.mustProvision(ctx, demand("101", "a", 1))[0]
				time.Sleep(time.Hour)
				between := &betweenReads{Store: w.store}
				reader := w.newFleet("b", priced, func(o *fleet.Options) { o.Store = between })
				for _, step := range []struct {
					at string
					do func()
				}{{c.ends, end(ctx, w, host)}, {c.isGone, gone(ctx, w, host)}} {
					switch step.at {
					case "before":
						step.do()
					case "live":
						between.afterLive = step.do
					case "due":
						between.afterDue = step.do
					}
				}
				report, err := reader.Costs(ctx, fleet.CostQuery{By: fleet.CostByRun}, time.Now())
				lived := w.machineTime(w.recordedIDs())
				if got := report.Total.Sum(); err != nil || (got-lived).Abs() > 2*time.Minute || report.Total.Runs > 1 || lived < time.Hour {
					t.Errorf("the machine lived for %s, and the report has %+v (%v)", lived, report.Rows, err)
				}
			})
		})
	}
}

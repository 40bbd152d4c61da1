package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// A sweep that looks closer at more hosts than it has in memory at once decides on each of them once.
func TestSweepsOfManyHosts(t *testing.T) {
	racepass.CoveredBy(t, "TestHostsThatReportAreNotGone")
	const many, silent = 2_500, 60
	begun := map[string]func(w *world) (fleet.Op, *op.Recorder){
		"liveness": func(w *world) (fleet.Op, *op.Recorder) { s := w.fleet.NewLivenessSweep(); return s, s.Recorder() },
		"cloud":    func(w *world) (fleet.Op, *op.Recorder) { s := w.fleet.NewCloudSweep(); return s, s.Recorder() },
	}
	for name, begin := range begun {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			history := &batches{world: w}
			w.fleet = w.newFleet("b", func(o *fleet.Options) {
				o.Compute, o.Store = elsewhere{o.Compute}, history.of(o.Store)
			})
			now := time.Now()
			for i := range many {
				r := lifecycle.Record{
					HostKey: fmt.Sprintf("i-%017d", i), InstanceID: fmt.Sprintf("i-%017d", i), Pool: "default", State: lifecycle.StateIdle, Repository: repository,
					Assignment: 2, Version: 1, MaxRuntime: time.Hour, Hardware: lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
					PooledAt: now, Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
				}
				p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: now, Assignment: 2, Signal: lifecycle.SignalRemoveRegOK, InterruptionAt: now.Add(2 * time.Minute)}
				if i%(many/silent) == 0 {
					p.HeartbeatAt = now.Add(-time.Hour)
				}
				if err := w.store.CreateInstance(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if err := w.store.ForHost(r.HostKey).PutReport(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			sweep, recorder := begin(w)
			var decided []op.Decided
			recorder.Decided = &decided
			if err := w.fleet.Drive(t.Context(), sweep, patience); err != nil {
				t.Fatal(err)
			}
			times := map[string]int{}
			for _, d := range decided {
				times[d.InstanceID]++
			}
			if len(times) != many {
				t.Errorf("it decided on %d of %d hosts", len(times), many)
			}
			if n := len(w.records(lifecycle.StateTerminated)); n != many {
				t.Errorf("%d of %d hosts that EC2 takes were ended", n, many)
			}
			if history.most > 1_000 || history.all < many {
				t.Errorf("%d events were written, %d of them at once", history.all, history.most)
			}
		})
	}
}

// Of many silent hosts all are counted, also those that the sweep does not have in memory at once.
func TestAMassOfSilentHostsIsCounted(t *testing.T) {
	const many = 1_200
	seen := &guards{}
	w := newWorld(t, func(o *fleet.Options) { o.Observer, o.Compute = seen, elsewhere{o.Compute} })
	now := time.Now()
	for i := range many {
		r := lifecycle.Record{
			HostKey: fmt.Sprintf("i-%017d", i), InstanceID: fmt.Sprintf("i-%017d", i), Pool: "default", State: lifecycle.StateIdle, Repository: repository,
			Assignment: 2, Version: 1, MaxRuntime: time.Hour, Hardware: lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
			PooledAt: now, Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
		}
		if err := w.store.CreateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: now.Add(-time.Hour), Assignment: 2, Signal: lifecycle.SignalRemoveRegOK}
		if err := w.store.ForHost(r.HostKey).PutReport(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w.sweepOnce(t.Context(), w.fleet.NewLivenessSweep())
	if n := seen.holds("silence"); n != many {
		t.Errorf("the guard shows %d of %d silent hosts", n, many)
	}
}

// batches counts the events that are written, and the most of them at once.
type batches struct {
	*world
	mu        sync.Mutex
	all, most int
}

type batchStore struct {
	fleet.Store
	counts *batches
}

func (b *batches) of(s fleet.Store) fleet.Store { return batchStore{s, b} }

func (s batchStore) AddEvents(ctx context.Context, events []lifecycle.Event) error {
	s.counts.mu.Lock()
	s.counts.all += len(events)
	s.counts.most = max(s.counts.most, len(events))
	s.counts.mu.Unlock()
	return s.Store.AddEvents(ctx, events)
}

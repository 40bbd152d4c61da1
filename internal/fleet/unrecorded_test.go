package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// afterLoss is a replica on a store that has only some of the records, as after the tables were lost, or an older
// state of them was restored.
func (w *world) afterLoss(ctx context.Context, kept []lifecycle.Record, change func(*fleet.Options)) {
	w.set(func() { w.store = store.New(time.Now) })
	for _, r := range kept {
		if err := w.store.CreateInstance(ctx, r); err != nil {
			w.t.Fatal(err)
		}
	}
	w.fleet = w.newFleet("b", change)
}

// The tables are lost while ten hosts serve runs. No sweep ends a machine, and operators see why.
func TestLostTablesEndNoMachine(t *testing.T) {
	for name, kept := range map[string]int{"all records are lost": 0, "some records are lost": 7} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
				hosts := w.mustProvision(ctx, demand("1", "a", 10))
				seen := &guards{}
				w.afterLoss(ctx, hosts[:kept], func(o *fleet.Options) { o.Observer = seen })
				go w.fleet.Sweep(ctx)
				time.Sleep(time.Hour)
				if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
					t.Fatal(err)
				}
				if n := w.machines(); n != 10 {
					t.Errorf("%d of 10 machines are left", n)
				}
				if held, told := seen.holds("unrecorded"), w.told(lifecycle.ReasonManyUnrecorded); held != 10-kept || told != 1 {
					t.Errorf("the guard shows %d machines and %d events", held, told)
				}
			})
		})
	}
}

// The tables are lost while jobs run on nine of ten hosts. The idle one is not ended either: those with a job count too.
func TestLostTablesOfABusyFleet(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		w.afterLoss(ctx, nil, func(*fleet.Options) {})
		for _, r := range hosts[1:] {
			p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: true}
			if err := w.store.ForHost(r.HostKey).PutReport(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		go w.fleet.Sweep(ctx)
		time.Sleep(time.Hour)
		if n := w.machines(); n != 10 {
			t.Errorf("%d of 10 machines are left", n)
		}
	})
}

// Machines that the sweep does not judge do not hide how many have lost their records: those of others with a copy of our tag,
// and those that were launched just now.
func TestLostTablesAmongOtherMachines(t *testing.T) {
	for name, foreign := range map[string]bool{"of others": true, "new ones": false} {
		t.Run(name, func(t *testing.T) {
			cloud := &copied{}
			inBubbleOf(t, func(o *fleet.Options) { cloud.Compute, o.Compute = o.Compute, cloud }, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", 4))
				w.afterLoss(ctx, nil, func(o *fleet.Options) { o.Compute = cloud })
				time.Sleep(10 * time.Minute)
				others, err := w.compute.Launch(ctx, lifecycle.LaunchOrder{
					Token: "others", RequestID: "others", Number: 1, Count: 60, Pool: "default", Repository: repository, RunID: "9",
					ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
				})
				if err != nil {
					t.Fatal(err)
				}
				if foreign {
					for _, m := range others {
						cloud.add(m.InstanceID)
					}
					time.Sleep(10 * time.Minute)
				}
				w.sweepOnce(ctx, w.fleet.NewCloudSweep())
				if n := w.machines(); n != 64 {
					t.Errorf("%d of 64 machines are left", n)
				}
			})
		})
	}
}

// The records are back: the guard is over, and a machine that was leaked is ended.
func TestRecordsThatAreBack(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		seen := &guards{}
		w.afterLoss(ctx, hosts[:5], func(o *fleet.Options) { o.Observer = seen })
		go w.fleet.Sweep(ctx)
		time.Sleep(10 * time.Minute)
		for _, r := range hosts[5:9] {
			if err := w.store.CreateInstance(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if n := w.machines(); n != 9 {
			t.Errorf("%d machines are left, and 9 have a record", n)
		}
		if held, told := seen.holds("unrecorded"), w.told(lifecycle.ReasonManyUnrecorded); held != 0 || told != 2 {
			t.Errorf("the guard shows %d machines and %d events", held, told)
		}
	})
}

// copied is a cloud with machines that have our tag by a copy.
type copied struct {
	fleet.Compute
	ids map[string]bool
}

func (c *copied) add(id string) {
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	c.ids[id] = true
}

func (c *copied) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	got, err := c.Compute.List(ctx, page)
	for i, m := range got.Items {
		got.Items[i].Foreign = c.ids[m.InstanceID]
	}
	return got, err
}

func TestTheCloudSweepLeavesForeignMachinesAlone(t *testing.T) {
	cloud := &copied{}
	inBubbleOf(t, func(o *fleet.Options) { cloud.Compute, o.Compute = o.Compute, cloud }, func(ctx context.Context, t *testing.T, w *world) {
		machines, err := w.compute.Launch(ctx, lifecycle.LaunchOrder{
			Token: "stray", RequestID: "stray", Number: 1, Count: 2, Pool: "default", Repository: repository, RunID: "9",
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
		})
		if err != nil {
			t.Fatal(err)
		}
		cloud.add(machines[0].InstanceID)
		go w.fleet.Sweep(ctx)
		time.Sleep(12 * time.Minute)
		page, err := w.compute.List(ctx, lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 || !cloud.ids[page.Items[0].InstanceID] {
			t.Errorf("machines: %+v, %v; want only the foreign one", page.Items, err)
		}
	})
}

// keptFor are how many machines a sweep kept for a reason, by the history.
func (w *world) keptFor(code lifecycle.ReasonCode) int {
	w.t.Helper()
	page, err := w.store.EventsSince(context.Background(), lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range page.Items {
		if e.Code == code && e.Action == lifecycle.ActionKeep && e.InstanceID != "" {
			kept[e.InstanceID] = true
		}
	}
	return len(kept)
}

// A machine without a record is kept for as long as a job may run, counted from when its agent began to say so: between two jobs the count
// ends, on each machine. The history says why it is kept.
func TestMachinesWithoutARecordAreKeptForTheirJobs(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		w.afterLoss(ctx, nil, func(*fleet.Options) {})
		sweep := func(busy bool, code lifecycle.ReasonCode) {
			t.Helper()
			for _, r := range hosts {
				p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: busy}
				if err := w.store.ForHost(r.HostKey).PutReport(ctx, p); err != nil {
					t.Fatal(err)
				}
			}
			w.sweepOnce(ctx, w.fleet.NewLivenessSweep())
			w.sweepOnce(ctx, w.fleet.NewCloudSweep())
			if n := w.machines(); n != 2 {
				t.Errorf("%d of 2 machines are left, to be kept for %s", n, code)
			}
			if n := w.keptFor(code); n != 2 {
				t.Errorf("the history has %d machines that were kept for %s, want 2", n, code)
			}
		}
		w.hold(ctx, w.fleet, 24*time.Hour)
		time.Sleep(10 * time.Minute)
		sweep(true, lifecycle.ReasonNotHeardYet)
		time.Sleep(10 * time.Minute)
		sweep(true, lifecycle.ReasonRunningJob)
		sweep(false, lifecycle.ReasonFleetHeld)
		time.Sleep(6 * time.Hour) // as long as a job may run
		w.hold(ctx, w.fleet, 0)
		sweep(true, lifecycle.ReasonRunningJob)
	})
}

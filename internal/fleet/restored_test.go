package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// One record of ten is lost, which is no mass. The host runs a job, so its machine stays for as long as a job may run.
func TestABusyMachineWithoutARecord(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		w.afterLoss(ctx, hosts[1:], func(*fleet.Options) {})
		lost := hosts[0].HostKey
		tell := func(busy bool) {
			p := lifecycle.Report{HostKey: lost, HeartbeatAt: time.Now(), Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: busy}
			if err := w.store.ForHost(lost).PutReport(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		tell(true)
		go w.fleet.Sweep(ctx)
		time.Sleep(time.Hour)
		if n := w.machines(); n != 10 {
			t.Fatalf("%d of 10 machines are left while the job runs", n)
		}
		tell(false)
		time.Sleep(15 * time.Minute)
		if n := w.machines(); n != 9 {
			t.Errorf("%d machines are left after the job, want the 9 with a record", n)
		}
	})
}

// The report of a host whose record was lost, and whose machine is gone, does not stay for ever.
func TestTheReportOfALostHost(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		if err := w.store.ForHost("i-lost").PutReport(ctx, lifecycle.Report{HostKey: "i-lost", HeartbeatAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		left := func() int {
			page, err := w.store.AllReports(ctx, lifecycle.PageOf{})
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Items)
		}
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		if left() != 1 {
			t.Error("the report of a host that was heard just now was deleted")
		}
		time.Sleep(6 * time.Minute)
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		if left() != 0 {
			t.Error("the report of a host without record and machine stays")
		}
	})
}

// A host that writes its report after its end leaves it without a record. Where no cloud sweep comes to it, as while EC2 lists no
// machines, the liveness sweep deletes it, but not before any job of the host must be over: until then it may protect the machine.
func TestTheReportOfAnEndedHost(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		put := func(p lifecycle.Report) {
			if err := w.store.ForHost(p.HostKey).PutReport(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		silentSince := time.Now()
		put(lifecycle.Report{HostKey: "i-ended", HeartbeatAt: silentSince})
		put(lifecycle.Report{HostKey: "i-busy", HeartbeatAt: silentSince, Busy: true})
		put(lifecycle.Report{HostKey: "i-ending", HeartbeatAt: silentSince})
		put(lifecycle.Report{HostKey: "i-malformed", Jobs: -1, Busy: true, HeartbeatAt: silentSince})
		ending := lifecycle.Record{HostKey: "i-ending", InstanceID: "i-ending", Pool: "default", State: lifecycle.StateTerminated, DueAt: silentSince.Add(30 * 24 * time.Hour), Assignment: 1, Version: 1}
		if err := w.store.CreateInstance(ctx, ending); err != nil {
			t.Fatal(err)
		}
		left := func() []string {
			w.sweepOnce(ctx, w.fleet.NewLivenessSweep())
			page, err := w.store.AllReports(ctx, lifecycle.PageOf{})
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, p := range page.Items {
				keys = append(keys, p.HostKey)
			}
			return keys
		}
		time.Sleep(7*24*time.Hour - time.Second)
		put(lifecycle.Report{HostKey: "i-fresh", HeartbeatAt: time.Now(), Busy: true})
		if diff := cmp.Diff([]string{"i-busy", "i-ended", "i-ending", "i-fresh", "i-malformed"}, left()); diff != "" {
			t.Errorf("a second before their time (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"i-ending", "i-fresh", "i-malformed"}, left()); diff != "" {
			t.Errorf("after their time (-want +got):\n%s", diff)
		}
	})
}

// A machine without a record is left alone until the grace period of the cloud sweep is over, and ended after it.
func TestTheGracePeriodOfTheCloudSweep(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		if _, err := w.compute.Launch(ctx, lifecycle.LaunchOrder{
			Token: "stray", RequestID: "stray", Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: "9",
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
		}); err != nil {
			t.Fatal(err)
		}
		w.sweepOnce(ctx, w.fleet.NewCloudSweep()) // the replica listens from here on
		grace := 5 * time.Minute
		time.Sleep(grace - time.Second)
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		if n := w.machines(); n != 1 {
			t.Fatalf("a machine was ended a second before the grace period was over; %d are left", n)
		}
		time.Sleep(2 * time.Second)
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		if n := w.machines(); n != 0 {
			t.Errorf("%d machines are left after the grace period", n)
		}
	})
}

// A host waits for longer than the queue keeps its message, as a fresh one does, or any in an outage of GitHub. The next
// run gets it anyway.
func TestAHostThatOutlivesItsMessage(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.queue.Retention = 30 * time.Second
		first := w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		time.Sleep(2 * time.Minute)
		known := map[string]bool{first[0].HostKey: true, first[1].HostKey: true}
		for _, h := range w.mustProvision(ctx, demand("2", "b", 2)) {
			if !known[h.HostKey] {
				t.Errorf("%s was launched while a host waited whose message was gone", h.HostKey)
			}
		}
	})
}

// A request is lost, and its caller asks once more. The number of its launch was used before with other terms: the
// launch takes what the first one made, and the next makes the rest.
func TestALaunchWhoseNumberWasUsedBefore(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.afterLoss(ctx, nil, func(*fleet.Options) {})
		if hosts := w.mustProvision(ctx, demand("1", "a", 3)); len(hosts) != 3 {
			t.Errorf("%d hosts, want 3", len(hosts))
		}
	})
}

// serves makes the agents of hosts report a later assignment than their records have.
func (w *world) serves(busy bool, hosts ...lifecycle.Record) {
	w.set(func() {
		for _, h := range hosts {
			w.forge[h.HostKey] = func(p *lifecycle.Report) { p.Assignment, p.Signal, p.Busy = 3, lifecycle.SignalRegOK, busy }
		}
	})
}

// The table of hosts is restored from a backup that is older than a host may run. The host serves a later run. Its job goes on
// for as long as any, no run gets the host, and it leaves after the job.
func TestABusyHostOfARestoredRecord(t *testing.T) {
	for name, heardAfter := range map[string]time.Duration{"its report is there": 0, "its report is lost too": 14 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
				h := w.mustProvision(ctx, demand("1", "a", 1))[0]
				time.Sleep(7 * time.Hour)
				w.serves(true, h)
				w.set(func() { w.mute = heardAfter > 0 })
				w.afterLoss(ctx, []lifecycle.Record{h}, func(*fleet.Options) {})
				if heardAfter == 0 {
					w.answer(ctx)
				}
				go w.fleet.Sweep(ctx)
				time.Sleep(heardAfter)
				w.set(func() { w.mute = false })
				time.Sleep(6*time.Hour - time.Minute)
				r := w.record(h.HostKey)
				if n := w.machines(); n != 1 || !r.Restored() || r.Claimable(time.Now(), 0) {
					t.Fatalf("%d machines, and the record is %+v", n, r)
				}
				if want := "an older state of its record was restored"; !strings.HasPrefix(r.RetiringReason, want) {
					t.Errorf("operators see %q, want %q", r.RetiringReason, want)
				}
				w.serves(false, h)
				time.Sleep(50 * time.Second)
				if n := w.machines(); n != 0 {
					t.Errorf("the host stays after its job: %+v", w.record(h.HostKey))
				}
			})
		})
	}
}

// Some records are older states, and two hosts were launched after the backup. These two are no mass by themselves, but the
// others show what has happened: no machine is ended for want of a record.
func TestMachinesThatAreNewerThanTheBackup(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		time.Sleep(time.Hour)
		w.serves(true, hosts[2:5]...)
		seen := &guards{}
		w.afterLoss(ctx, hosts[2:], func(o *fleet.Options) { o.Observer = seen })
		go w.fleet.Sweep(ctx)
		time.Sleep(20 * time.Minute)
		if n := w.machines(); n != 10 {
			t.Errorf("%d of 10 machines are left", n)
		}
		if held := seen.holds("unrecorded"); held != 5 {
			t.Errorf("the guard shows %d machines, want two without a record and three with a restored one", held)
		}
	})
}

// A machine without a record gets one while the cloud sweep goes through the others. It is not ended.
func TestAMachineThatIsRecordedDuringTheCloudSweep(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		h := w.mustProvision(ctx, demand("1", "a", 1))[0]
		time.Sleep(time.Hour)
		w.afterLoss(ctx, nil, func(*fleet.Options) {})
		w.sweepOnce(ctx, w.fleet.NewCloudSweep()) // from here on its agent has time to report
		time.Sleep(time.Minute)
		sweep := w.fleet.NewCloudSweep()
		for _, step := range []string{"list", "compare"} {
			if _, err := sweep.Step(ctx, time.Now()); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
		if err := w.store.CreateInstance(ctx, h); err != nil {
			t.Fatal(err)
		}
		w.sweepOnce(ctx, sweep)
		if n := w.machines(); n != 1 {
			t.Error("a machine with a record was ended for want of one")
		}
	})
}

package fleet_test

import (
	"context"
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

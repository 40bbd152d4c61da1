package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// elsewhere is a cloud that knows none of the fleet's machines, like EC2 in another region or another account, or an EC2 that answers with
// nothing for a while.
type elsewhere struct{ fleet.Compute }

func (elsewhere) Describe(_ context.Context, ids []string) (machines []lifecycle.Machine, _ error) {
	for _, id := range ids {
		machines = append(machines, lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone})
	}
	return machines, nil
}

func (elsewhere) List(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	return lifecycle.Page[lifecycle.Machine]{}, nil
}

// The agents report, so the machines are there, whatever the cloud does not show. Neither the sweeps nor Refresh end a host.
func TestHostsThatReportAreNotGone(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		time.Sleep(10 * time.Minute)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = elsewhere{o.Compute} })
		go w.fleet.Sweep(ctx)
		time.Sleep(12 * time.Minute)
		if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		if n := len(w.records(lifecycle.StateRunning)); n != len(hosts) {
			t.Errorf("%d of %d hosts are left", n, len(hosts))
		}
	})
}

// A host that waits in the pool, no longer reports, and is not shown by the cloud, is ended for its silence.
func TestASilentPooledHostOfAnUnknownMachineEnds(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		w.release(ctx, "1", true)
		silent := w.records()[0].HostKey
		w.set(func() { w.deaf[silent] = true })
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = elsewhere{o.Compute} })
		go w.fleet.Sweep(ctx)
		time.Sleep(3 * time.Minute)
		if ended := w.records(lifecycle.StateTerminated); len(ended) != 1 || ended[0].HostKey != silent {
			t.Errorf("%d hosts were ended, want the silent one", len(ended))
		}
	})
}

// A host that serves a run, no longer reports, and is not shown by the cloud, may have a job. It is kept until that has had its runtime.
func TestASilentHostOfARunAndAnUnknownMachineHasItsRuntime(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		time.Sleep(10 * time.Minute)
		w.set(func() { w.deaf[hosts[0].HostKey] = true })
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = elsewhere{o.Compute} })
		go w.fleet.Sweep(ctx)
		time.Sleep(12 * time.Minute)
		w.mustEndNone("the sweeps")
		time.Sleep(time.Until(w.record(hosts[0].HostKey).Threshold) + 5*time.Minute)
		if state := w.record(hosts[0].HostKey).State; state != lifecycle.StateTerminated {
			t.Errorf("after the longest runtime of its job the silent host is %s", state)
		}
	})
}

// The store takes no reports, so that no host can be heard, and the cloud shows none of them. That shows no host's end.
func TestHostsThatCannotBeHeardAreNotGone(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		time.Sleep(10 * time.Minute)
		w.deafen(w.records())
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = elsewhere{o.Compute} })
		go w.fleet.Sweep(ctx)
		time.Sleep(12 * time.Minute)
		if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		w.mustEndNone("the sweeps and a refresh")
	})
}

// After an outage of the store the reports are old, and agents need a moment to write others. Until they have, the cloud shows none of the hosts.
func TestHostsThatCouldNotReportYetAreNotGone(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		w.deafen(w.records())
		time.Sleep(10 * time.Minute)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Compute = elsewhere{o.Compute} })
		go w.fleet.Sweep(ctx)
		time.Sleep(20 * time.Second)
		w.set(func() { clear(w.deaf) })
		time.Sleep(10 * time.Minute)
		w.mustEndNone("the sweeps")
	})
}

package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// malformed are the ways in which a report breaks a rule.
var malformed = map[string]func(*lifecycle.Report){
	"a heartbeat 90 s ahead": func(p *lifecycle.Report) { p.HeartbeatAt = p.HeartbeatAt.Add(90 * time.Second) },
	"an unknown signal":      func(p *lifecycle.Report) { p.Signal = "UD_PLEASE_KEEP_ME" },
	"negative jobs":          func(p *lifecycle.Report) { p.Jobs = -1 },
}

// forAllMalformed runs a test for each way, in a bubble.
func forAllMalformed(t *testing.T, test func(ctx context.Context, t *testing.T, w *world, forge func(*lifecycle.Report))) {
	t.Helper()
	for name, forge := range malformed {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) { test(ctx, t, w, forge) })
		})
	}
}

// A request that comes out short gives its hosts back, except the busy ones:
// a job on a host whose report is malformed lives on, reported or not.
func TestAMalformedReportEndsNoJobAtARollBack(t *testing.T) {
	racepass.CoveredBy(t, "TestAMalformedReportIsNoSignal")
	forAllMalformed(t, func(ctx context.Context, t *testing.T, w *world, forge func(*lifecycle.Report)) {
		w.compute.SetCapacity("*", 2)
		d := demand("1", "a", 3)
		d.Spec.Timeout, d.Spec.MaxRuntime = time.Minute, 20*time.Minute
		answer := make(chan error)
		go func() {
			_, err := w.provision(ctx, d)
			answer <- err
		}()
		time.Sleep(30 * time.Second)
		hosts := w.records(lifecycle.StateRunning)
		if len(hosts) != 2 {
			t.Fatalf("%d hosts run, want 2", len(hosts))
		}
		saysSo, mute := hosts[0], hosts[1]
		w.set(func() {
			w.busy[saysSo.HostKey] = true
			w.forge[saysSo.HostKey], w.forge[mute.HostKey] = forge, forge
		})
		var short *fleet.ShortError
		if err := <-answer; !errors.As(err, &short) {
			t.Fatalf("got %v, want a ShortError", err)
		}
		time.Sleep(15 * time.Minute)
		if r := w.record(saysSo.HostKey); r.State != lifecycle.StateRunning || r.RunID != "1" {
			t.Errorf("the host that says that it is busy is %s: %s", r.Condition(), r.Reason)
		}
		if r := w.record(mute.HostKey); !r.Releasing() || !r.Threshold.Equal(r.RuntimeEndsAt) {
			t.Errorf("the host of which nothing is known is %s until %s, want it to drain: %s", r.Condition(), r.Threshold, r.Reason)
		}
		time.Sleep(10 * time.Minute) // and for no longer than any job may run
		for _, host := range hosts {
			if r := w.record(host.HostKey); r.State != lifecycle.StateTerminated {
				t.Errorf("after its runtime host %s is %s: %s", r.InstanceID, r.Condition(), r.Reason)
			}
		}
	})
}

// A job may begin on a host whose clock is off, since GitHub gives it one.
func TestAMalformedReportEndsNoJobOfAStartingHost(t *testing.T) {
	racepass.CoveredBy(t, "TestAMalformedReportIsNoSignal")
	forAllMalformed(t, func(ctx context.Context, t *testing.T, w *world, forge func(*lifecycle.Report)) {
		w.set(func() { w.mute = true })
		d := demand("1", "a", 1)
		d.Spec.MaxRuntime = 20 * time.Minute
		w.abandon(ctx, d)
		key := w.hostOf("1").HostKey
		w.set(func() { w.mute, w.busy[key], w.forge[key] = false, true, forge })
		time.Sleep(25 * time.Minute) // its threshold is 10 min after its launch
		if r := w.record(key); r.State != lifecycle.StateCreated {
			t.Errorf("the host is %s, want it left alone: %s", r.Condition(), r.Reason)
		}
		time.Sleep(10 * time.Minute)
		if r := w.record(key); r.State != lifecycle.StateTerminated {
			t.Errorf("after its runtime the host is %s", r.Condition())
		}
	})
}

// A host with a malformed report is not pooled, and what was not believed is not shown.
func TestAMalformedReportIsNoSignal(t *testing.T) {
	forAllMalformed(t, func(ctx context.Context, t *testing.T, w *world, forge func(*lifecycle.Report)) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.forge[host.HostKey] = forge })
		time.Sleep(time.Second)
		if _, p, err := w.fleet.Instance(ctx, host.InstanceID, time.Now()); err != nil || p != nil {
			t.Errorf("the instance is shown with %+v (%v)", p, err)
		}
		_, reports, err := w.fleet.List(ctx, lifecycle.Filter{}, lifecycle.PageOf{}, time.Now())
		if err != nil || len(reports) != 0 {
			t.Errorf("the instances are listed with %+v (%v)", reports, err)
		}
		if r := w.record(host.HostKey); r.State != lifecycle.StateRunning {
			t.Fatalf("the host is %s: %s", r.Condition(), r.Reason)
		}
		// With the store's last word sound, it is released as not busy.
		w.set(func() { delete(w.forge, host.HostKey) })
		time.Sleep(time.Second)
		w.set(func() { w.forge[host.HostKey] = forge })
		r := w.release(ctx, "1", true)
		if r.Pooled() != 0 || r.Failed() != 1 {
			t.Errorf("pooled %d, failed %d; want 0 and 1", r.Pooled(), r.Failed())
		}
	})
}

func TestTheGitHubSweepLeavesWhatMayBeBusy(t *testing.T) {
	for name, forge := range malformed {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *fleet.Options) { o.Repositories = []string{repository} })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go w.agents(ctx)
				go w.fleet.Sweep(ctx)
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.set(func() { w.forge[host.HostKey] = forge })
				ghost := "remuda-0-" + host.InstanceID
				w.github.register(lifecycle.Record{RunnerName: ghost})
				time.Sleep(11 * time.Minute)
				if !slices.Contains(w.github.names(), ghost) {
					t.Error("the registration of a host that may be busy under it was deleted")
				}
				if _, err := w.fleet.Terminate(ctx, host.InstanceID, "test", time.Now()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Minute)
				if names := w.github.names(); len(names) != 0 {
					t.Errorf("registrations %v are left of a host that has ended", names)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A host cannot hide its machine's end behind a report that is not believed.
func TestALostMachineIsFoundBehindAMalformedReport(t *testing.T) {
	forAllMalformed(t, func(ctx context.Context, t *testing.T, w *world, forge func(*lifecycle.Report)) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.forge[host.HostKey] = forge })
		time.Sleep(time.Second)
		w.set(func() { w.deaf[host.HostKey] = true })
		w.compute.Kill(host.InstanceID)
		time.Sleep(6 * time.Minute)
		if r := w.record(host.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("the host whose machine is gone is %s", r.Condition())
		}
	})
}

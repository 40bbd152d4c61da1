package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func TestSilentHosts(t *testing.T) {
	racepass.CoveredBy(t, "TestColdWarmExpire")
	tests := map[string]struct {
		hosts, silent int
		run           bool // silent while running, else while pooled
		dead          bool // EC2 says that the machine is gone
		wantEnded     int
	}{
		"one idle host of many":             {hosts: 10, silent: 1, wantEnded: 1},
		"two of two":                        {hosts: 2, silent: 2, wantEnded: 2},
		"too many at once":                  {hosts: 10, silent: 5, wantEnded: 0},
		"a running host that EC2 still has": {hosts: 10, silent: 1, run: true, wantEnded: 0},
		"a running host that EC2 lost":      {hosts: 10, silent: 1, run: true, dead: true, wantEnded: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", tt.hosts))
				if !tt.run {
					w.release(ctx, "1", true)
				}
				records := w.records()
				w.set(func() {
					for _, r := range records[:tt.silent] {
						w.deaf[r.HostKey] = true
						if tt.dead {
							w.compute.Kill(r.InstanceID)
						}
					}
				})
				time.Sleep(3 * time.Minute) // an idle host has five before its threshold
				if got := len(w.records(lifecycle.StateTerminated)); got != tt.wantEnded {
					t.Errorf("%d hosts were ended, want %d", got, tt.wantEnded)
				}
			})
		})
	}
}

func TestAStoreOutageEndsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outage := &outage{}
		w := newWorld(t, func(o *fleet.Options) {
			outage.Store = o.Store
			o.Store = outage
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		w.mustProvision(ctx, demand("1", "a", 2))
		w.mustProvision(ctx, demand("2", "b", 2))
		w.release(ctx, "2", true)
		time.Sleep(time.Minute)
		w.set(func() { w.mute = true })
		outage.set(true)
		time.Sleep(2 * time.Minute)
		outage.set(false)
		time.Sleep(40 * time.Second) // no agent has reported yet
		w.set(func() { w.mute = false })
		time.Sleep(time.Minute)
		if n := len(w.records(lifecycle.StateRunning)); n != 2 {
			t.Errorf("%d hosts run, want 2", n)
		}
		for _, r := range w.records(lifecycle.StateTerminated) {
			t.Errorf("host %s was ended: %s", r.InstanceID, r.Reason)
		}
		cancel()
		synctest.Wait()
	})
}

// Where nothing can be written no agent can report, and its silence says
// nothing. There are too few hosts here to call it a silence of the masses.
func TestAFullStoreEndsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outage := &outage{}
		w := newWorld(t, func(o *fleet.Options) {
			outage.Store = o.Store
			o.Store = outage
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		time.Sleep(time.Minute)
		w.set(func() { w.mute = true })
		outage.full.Store(true)
		time.Sleep(2 * time.Minute)
		outage.full.Store(false)
		time.Sleep(40 * time.Second) // no agent has reported yet
		w.set(func() { w.mute = false })
		time.Sleep(10 * time.Second)
		for _, r := range w.records(lifecycle.StateTerminated) {
			t.Errorf("host %s was ended: %s", r.InstanceID, r.Reason)
		}
		cancel()
		synctest.Wait()
	})
}

func TestARequestThatNeedsGitHubHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		// The first loses its host and wants another, which takes a token that
		// GitHub does not give.
		first := demand("1", "a", 1)
		first.Repository = "other/app"
		w.abandon(ctx, first)
		if _, err := w.fleet.Terminate(ctx, w.hostOf("1").InstanceID, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.github.setDownFor("other/app")
		time.Sleep(time.Minute)
		// The second waits for the host that it has.
		w.abandon(ctx, demand("2", "b", 1))
		w.set(func() { w.mute = false })
		time.Sleep(time.Minute)
		if r := w.hostOf("2"); r.State != lifecycle.StateRunning {
			t.Errorf("after a minute the host of the second request is %s", r.Condition())
		}
	})
}

// abandon asks for hosts and leaves after a second.
func (w *world) abandon(ctx context.Context, d fleet.Demand) {
	w.t.Helper()
	caller, leave := context.WithTimeout(ctx, time.Second)
	defer leave()
	if _, err := w.provision(caller, d); !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("the request came to an end before its caller left: %v", err)
	}
}

// hostOf is the one host of a run.
func (w *world) hostOf(run string) lifecycle.Record {
	w.t.Helper()
	for _, r := range w.records() {
		if r.RunID == run {
			return r
		}
	}
	w.t.Fatalf("run %s has no host", run)
	return lifecycle.Record{}
}

func TestTheLeasePassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		other := w.newFleet("b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, stop := context.WithCancel(ctx)
		go w.fleet.Sweep(first)
		time.Sleep(time.Second)
		go other.Sweep(ctx)
		time.Sleep(time.Minute)
		if l, err := w.store.Lease(ctx, "sweep"); err != nil || l.Holder != "a" {
			t.Errorf("lease: %+v, %v; want a to hold it", l, err)
		}
		stop()
		time.Sleep(30 * time.Second)
		if l, err := w.store.Lease(ctx, "sweep"); err != nil || l.Holder != "b" {
			t.Errorf("lease: %+v, %v; want b to have taken over", l, err)
		}
		cancel()
		synctest.Wait()
	})
}

func TestTheCloudSweepEndsOnlyWhatIsLeaked(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		owned := w.mustProvision(ctx, demand("1", "a", 1))[0]
		order := lifecycle.LaunchOrder{
			Token: "stray", RequestID: "stray", Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: "9",
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
		}
		stray, err := w.compute.Launch(ctx, order)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if n := w.machines(); n != 2 {
			t.Fatalf("%d machines within the grace period, want 2", n)
		}
		time.Sleep(8 * time.Minute)
		page, err := w.compute.List(ctx, lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 || page.Items[0].InstanceID != owned.InstanceID {
			t.Errorf("machines: %+v, %v; want only %s, without %s", page.Items, err, owned.InstanceID, stray[0].InstanceID)
		}
	})
}

// hiding is a store whose batched read leaves one record out, as one that was
// made a moment before that record would.
type hiding struct {
	fleet.Store
	key string
}

func (h *hiding) Instances(ctx context.Context, keys []string) ([]lifecycle.Record, error) {
	records, err := h.Store.Instances(ctx, keys)
	return slices.DeleteFunc(records, func(r lifecycle.Record) bool { return r.HostKey == h.key }), err
}

// The machine is listed and its record not yet there, then it is recorded and
// its launch closed: by then the request says nothing of a launch.
func TestTheCloudSweepAsksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hiding{}
		w := newWorld(t, func(o *fleet.Options) {
			store.Store = o.Store
			o.Store = store
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		store.key = w.mustProvision(ctx, demand("1", "a", 1))[0].HostKey
		time.Sleep(6 * time.Minute) // past the grace period
		if err := w.fleet.Drive(ctx, w.fleet.NewCloudSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if n := w.machines(); n != 1 {
			t.Errorf("%d machines, want the one that has a record", n)
		}
		cancel()
		synctest.Wait()
	})
}

func TestTheGitHubSweepRemovesGhosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) { o.Repositories = []string{repository} })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.github.register(lifecycle.Record{RunnerName: "remuda-0-" + host.InstanceID}) // a ghost of ours
		w.github.register(lifecycle.Record{RunnerName: "remuda-1-i-unknown"})          // another installation's
		w.github.register(lifecycle.Record{RunnerName: "another-fleets"})
		time.Sleep(6 * time.Minute)
		names := w.github.names()
		for _, want := range []string{host.RunnerName, "remuda-1-i-unknown", "another-fleets"} {
			if !strings.Contains(strings.Join(names, " "), want) {
				t.Errorf("%s was deleted", want)
			}
		}
		if len(names) != 3 {
			t.Errorf("registrations: %v, want 3", names)
		}
		cancel()
		synctest.Wait()
	})
}

// What is left of a hot host's registration that GitHub had refused to delete goes while the host has a job of its run. A runner that
// is connected, or has a job, may be the one that the host is busy under.
func TestTheGitHubSweepRemovesGhostsBesideAJob(t *testing.T) {
	for name, runner := range map[string]lifecycle.Runner{"offline": {}, "online": {Online: true}, "busy": {Busy: true}} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, func(o *fleet.Options) { o.Repositories = []string{repository} }, func(ctx context.Context, t *testing.T, w *world) {
				host := w.record(w.mustProvision(ctx, demand("1", "a", 1))[0].HostKey)
				left := "remuda-0-" + host.InstanceID
				w.github.register(lifecycle.Record{RunnerName: left})
				w.github.change(left, func(r *lifecycle.Runner) { r.Online, r.Busy = runner.Online, runner.Busy })
				w.set(func() { w.busy[host.HostKey] = true })
				time.Sleep(10 * time.Second)
				w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
				if w.github.knows(left) != (name != "offline") {
					t.Errorf("the %s runner is left: %t", name, w.github.knows(left))
				}
				if !w.github.knows(host.RunnerName) {
					t.Error("the registration of the host was deleted")
				}
			})
		})
	}
}

// A job-scoped runner is registered before its host is claimed: a sweep between the
// two must not take the registration for a ghost.
func TestTheGitHubSweepLeavesAComingClaim(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) { o.Repositories = []string{repository} }, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		pooled := w.record(host.HostKey)
		coming := lifecycle.RunnerName(pooled.Assignment+1, pooled.InstanceID)
		w.github.register(lifecycle.Record{RunnerName: coming})
		w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
		if !slices.Contains(w.github.names(), coming) {
			t.Error("the registration of a claim under way was deleted")
		}
		if _, err := w.fleet.Terminate(ctx, host.InstanceID, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
		if slices.Contains(w.github.names(), coming) {
			t.Error("the registration of a claim that never came is left of a host that has ended")
		}
	})
}

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		time.Sleep(6 * time.Minute) // past the idle time, with no sweep running
		dry := w.fleet.NewRefresh(true)
		w.set(func() { w.mute = true })
		before := w.store.Dump()
		if err := w.fleet.Drive(ctx, dry, patience); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.store.Dump()); diff != "" {
			t.Errorf("a dry run changed the store:\n%s", diff)
		}
		want := []fleet.Decided{{InstanceID: host.InstanceID, Action: lifecycle.ActionTerminate, Code: lifecycle.ReasonIdleTimeout, Reason: "idle until its threshold", Sweep: "refresh"}}
		if diff := cmp.Diff(want, dry.Decisions()); diff != "" {
			t.Errorf("dry run (-want +got):\n%s", diff)
		}
		w.set(func() { w.mute = false })
		if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		if n := w.machines(); n != 0 {
			t.Errorf("%d machines are left", n)
		}
		cancel()
		synctest.Wait()
	})
}

func TestOrders(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		id := host.InstanceID
		if _, err := w.fleet.Terminate(ctx, "i-none", "test", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("unknown host: %v, want ErrNotFound", err)
		}
		var invalid *fleet.InvalidError
		for _, d := range []time.Duration{25 * time.Hour, -time.Second} {
			if _, err := w.fleet.Hold(ctx, id, d, "test", time.Now()); !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Rule, "is not between 0 and 24h0m0s") {
				t.Errorf("a hold of %s: %v, want an InvalidError", d, err)
			}
			if _, _, err := w.fleet.HoldFleet(ctx, d, "test", "CN=ops", time.Now()); !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Rule, "is not between 0 and 24h0m0s") {
				t.Errorf("a hold of %s on the fleet: %v, want an InvalidError", d, err)
			}
		}
		if _, err := w.fleet.Hold(ctx, id, time.Hour, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		var held *fleet.HeldError
		if _, err := w.fleet.Terminate(ctx, id, "test", time.Now()); !errors.As(err, &held) {
			t.Errorf("terminate a held host: %v, want a HeldError", err)
		}
		w.release(ctx, "1", false)
		time.Sleep(30 * time.Minute)
		if r := w.record(host.HostKey); r.State == lifecycle.StateTerminated {
			t.Errorf("the held host was ended: %s", r.Reason)
		}
		if _, err := w.fleet.Hold(ctx, id, 0, "done looking", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.fleet.Terminate(ctx, id, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.fleet.Terminate(ctx, id, "test", time.Now()); err != nil {
			t.Errorf("a repeated order: %v", err)
		}
		var state *fleet.StateError
		if _, err := w.fleet.Hold(ctx, id, time.Hour, "test", time.Now()); !errors.As(err, &state) {
			t.Errorf("hold an ended host: %v, want a StateError", err)
		}
	})
}

func TestExplain(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		if _, err := w.fleet.Explain(ctx, repository, "1", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("an unknown run: %v, want ErrNotFound", err)
		}
		w.mustProvision(ctx, demand("1", "a", 1))
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(e.Sentences, "\n")
		for _, part := range []string{"asked for 1 large on-demand host of pool default at", "is running", "created → running", "launched for run 1"} {
			if !strings.Contains(text, part) {
				t.Errorf("the explanation lacks %q:\n%s", part, text)
			}
		}
	})
}

// A long history ends with what happened last.
func TestExplainTellsTheNewest(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		const bound, all = 1000, 2050
		long := make([]lifecycle.Event, all)
		for i := range long {
			long[i] = lifecycle.Event{At: time.Now(), Repository: repository, RunID: "1", Reason: fmt.Sprint("number ", i+1)}
		}
		if err := w.store.AddEvents(ctx, long); err != nil {
			t.Fatal(err)
		}
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(e.Events); n != bound {
			t.Fatalf("%d events, want %d", n, bound)
		}
		first, last := e.Events[0].Reason, e.Events[bound-1].Reason
		if want := fmt.Sprint("number ", all-bound+1); first != want || last != fmt.Sprint("number ", all) {
			t.Errorf("from %q to %q, want from %q to the last", first, last, want)
		}
	})
}

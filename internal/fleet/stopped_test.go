package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// stops has the default pool stop so many of its idle hosts.
func stops(maximum int) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.StoppedMaximum = maximum
		o.Pools["default"] = p
	}
}

// useOnce has hosts that served a run each, and wait in the pool.
func (w *world) useOnce(ctx context.Context, hosts int) {
	w.t.Helper()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.agents(running)
	if _, err := w.provision(ctx, demand("first", "q", hosts)); err != nil {
		w.t.Fatal(err)
	}
	w.releaseQuietly(ctx, "first")
	w.until("the hosts wait", time.Minute, func() bool {
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		pooled := 0
		for _, r := range w.allRecords() {
			if r.Pooled() {
				pooled++
			}
		}
		return pooled == hosts
	})
}

// stopOne has a host that served a run wait for its idle time, and be stopped.
func (w *world) stopOne(ctx context.Context) lifecycle.Record {
	w.t.Helper()
	w.useOnce(ctx, 1)
	w.waitIdle(ctx)
	r := w.allRecords()[0]
	if !r.Stopped() {
		w.t.Fatalf("the host is %s: %s", r.Condition(), r.Reason)
	}
	return r
}

// waitIdle passes the idle time of all hosts, whose agents are heard, and has the due sweep look at them until their machines are stopped.
func (w *world) waitIdle(ctx context.Context) {
	w.t.Helper()
	for range 33 {
		time.Sleep(10 * time.Second)
		w.answer(ctx)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
	}
}

func (w *world) machine(ctx context.Context, id string) lifecycle.MachineState {
	w.t.Helper()
	got, err := w.compute.Describe(ctx, []string{id})
	if err != nil {
		w.t.Fatal(err)
	}
	return got[0].State
}

// TestAnIdleHostIsStopped: its machine too, without its report, and it outlives any silence until its time is over.
func TestAnIdleHostIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		if r.Stop.StoppedAt.IsZero() || w.machine(ctx, r.InstanceID) != lifecycle.MachineStopped {
			t.Fatalf("the host is %+v, and its machine %s", r.Stop, w.machine(ctx, r.InstanceID))
		}
		if reports, err := w.store.Reports(ctx, []string{r.HostKey}); err != nil || len(reports) > 0 {
			t.Errorf("reports: %v, %v; want none", reports, err)
		}
		for range 23 {
			time.Sleep(time.Hour)
			for _, op := range []fleet.Op{w.fleet.NewLivenessSweep(), w.fleet.NewCloudSweep(), w.fleet.NewDueSweep()} {
				w.sweepOnce(ctx, op)
			}
		}
		if got := w.record(r.HostKey); !got.Stopped() {
			t.Fatalf("after 23 hours it is %s: %s", got.Condition(), got.Reason)
		}
		time.Sleep(time.Hour)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if got := w.record(r.HostKey); got.State != lifecycle.StateTerminated || got.ReasonCode != lifecycle.ReasonStoppedTimeout {
			t.Errorf("after its time it is %s: %s", got.Condition(), got.Reason)
		}
		if got := w.machine(ctx, r.InstanceID); got != lifecycle.MachineGone {
			t.Errorf("its machine is %s", got)
		}
	})
}

// TestAnIdleHostIsHibernated, if it was launched for that, and serves its next run as any stopped one.
func TestAnIdleHostIsHibernated(t *testing.T) {
	for name, test := range map[string]struct{ launchedFor, pool, want bool }{
		"launched for it": {true, true, true}, "launched before that": {false, true, false}, "its pool does no more": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ctx := newWorld(t, stops(1), func(o *fleet.Options) {
					p := o.Pools["default"]
					p.Policy.Hibernates = test.pool
					o.Pools["default"] = p
				}), t.Context()
				w.compute.SetHibernates(test.launchedFor)
				r := w.stopOne(ctx)
				if got := w.compute.Hibernated(r.InstanceID); got != test.want || w.machine(ctx, r.InstanceID) != lifecycle.MachineStopped {
					t.Fatalf("hibernated: %t, want %t; the machine is %s", got, test.want, w.machine(ctx, r.InstanceID))
				}
				running, cancel := context.WithCancel(ctx)
				defer cancel()
				go w.agents(running)
				res, err := w.provision(ctx, demand("next", "q", 1))
				if err != nil || len(res.Instances()) != 1 || res.Instances()[0].HostKey != r.HostKey {
					t.Fatalf("the request has %+v, %v; want host %s", res.Instances(), err, r.HostKey)
				}
			})
		})
	}
}

// TestOnlySoManyAreStarted as a request lacks.
func TestOnlySoManyAreStarted(t *testing.T) {
	inBubbleOf(t, stops(2), func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 2)
		w.waitIdle(ctx)
		w.mustProvision(ctx, demand("next", "q", 1))
		if got := w.records(lifecycle.StateIdle); len(got) != 1 || !got[0].Stopped() || got[0].Assignment != 2 {
			t.Errorf("the other host is %+v, want it untouched", got)
		}
	})
}

// TestOnlySoManyAreStopped: another idle host is ended.
func TestOnlySoManyAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(2)), t.Context()
		w.useOnce(ctx, 3)
		w.waitIdle(ctx)
		stopped := 0
		for _, r := range w.allRecords() {
			if r.Stopped() {
				stopped++
			} else if r.ReasonCode != lifecycle.ReasonIdleTimeout {
				t.Errorf("host %s is %s: %s", r.InstanceID, r.Condition(), r.Reason)
			}
		}
		if stopped != 2 {
			t.Errorf("%d hosts are stopped, want 2", stopped)
		}
	})
}

// TestAHeldHostIsNotStopped, neither by its own hold nor by that of the fleet.
func TestAHeldHostIsNotStopped(t *testing.T) {
	for name, hold := range map[string]func(context.Context, *world, string) error{
		"its own": func(ctx context.Context, w *world, id string) error {
			_, err := w.fleet.Hold(ctx, id, time.Hour, "test", time.Now())
			return err
		},
		"the fleet's": func(ctx context.Context, w *world, _ string) error {
			_, _, err := w.fleet.HoldFleet(ctx, time.Hour, "", "test", time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ctx := newWorld(t, stops(1)), t.Context()
				w.useOnce(ctx, 1)
				r := w.allRecords()[0]
				if err := hold(ctx, w, r.InstanceID); err != nil {
					t.Fatal(err)
				}
				w.waitIdle(ctx)
				if got := w.record(r.HostKey); !got.Pooled() || w.machine(ctx, r.InstanceID) != lifecycle.MachineRunning {
					t.Errorf("the host is %s, and its machine %s", got.Condition(), w.machine(ctx, r.InstanceID))
				}
			})
		})
	}
}

// TestARequestStartsAStoppedHost before it launches one.
func TestARequestStartsAStoppedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		res, err := w.provision(ctx, demand("next", "q", 1))
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Instances()) != 1 || res.Instances()[0].HostKey != r.HostKey {
			t.Fatalf("the request has %+v, want host %s", res.Instances(), r.HostKey)
		}
		got := w.record(r.HostKey)
		if got.State != lifecycle.StateRunning || got.Stop != nil || got.Assignment != r.Assignment+1 || got.Uses != r.Uses+1 {
			t.Errorf("the host is %s: %+v", got.Condition(), got)
		}
	})
}

// TestNoCapacityToStart: the request launches a host, and the stopped one stays stopped for the next.
func TestNoCapacityToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		w.compute.SetStartShort(true)
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		res, err := w.provision(ctx, demand("next", "q", 1))
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Instances()) != 1 || res.Instances()[0].HostKey == r.HostKey {
			t.Fatalf("the request has %+v, want another host than %s", res.Instances(), r.HostKey)
		}
		got := w.record(r.HostKey)
		if !got.Stopped() || got.Stop.StoppedAt.IsZero() || got.RunID != "" || got.Uses != r.Uses || got.Startable(time.Now(), 0) {
			t.Errorf("the host is %s: %+v", got.Condition(), got)
		}
		if !got.Startable(time.Now().Add(5*time.Minute), 0) {
			t.Error("it cannot be started 5 minutes later")
		}
	})
}

// TestACrashBeforeTheStart: the due sweep starts the machine of a host that a request took.
func TestACrashBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		p, err := w.fleet.NewProvision(demand("next", "q", 1))
		if err != nil {
			t.Fatal(err)
		}
		for !w.record(r.HostKey).Starting() {
			if _, err := p.Step(ctx, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.machine(ctx, r.InstanceID); got != lifecycle.MachineStopped {
			t.Fatalf("its machine is %s before the request has the host", got)
		}
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		for range 30 {
			time.Sleep(5 * time.Second)
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
		}
		if got := w.record(r.HostKey); got.State != lifecycle.StateRunning || got.RunID != "next" {
			t.Errorf("the host is %s of run %q: %s", got.Condition(), got.RunID, got.Reason)
		}
	})
}

// TestTwoRequestsForOneStoppedHost: one has it, and the other launches.
func TestTwoRequestsForOneStoppedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		other := w.newFleet("b", stops(1))
		done := make(chan error)
		go func() {
			p, err := other.NewProvision(demand("one", "q", 1))
			if err == nil {
				err = other.Drive(ctx, p, patience)
			}
			done <- err
		}()
		if _, err := w.provision(ctx, demand("two", "q", 1)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		runs := map[string]int{}
		for _, got := range w.records(lifecycle.StateRunning) {
			runs[got.RunID]++
		}
		if runs["one"] != 1 || runs["two"] != 1 || w.record(r.HostKey).State != lifecycle.StateRunning {
			t.Errorf("running hosts by run: %v; the stopped one is %s", runs, w.record(r.HostKey).Condition())
		}
	})
}

// TestAStoppedHostThatAnotherTakesFirst: a request that found it passes it over, and launches one.
func TestAStoppedHostThatAnotherTakesFirst(t *testing.T) {
	inBubbleOf(t, stops(1), func(ctx context.Context, t *testing.T, w *world) {
		r := w.stopOne(ctx)
		late, still := w.stillReplica(stops(1))
		faster, slower := w.newProvision(w.fleet, demand("one", "q", 1)), w.newProvision(late, demand("two", "q", 1))
		still.set(nil, func(next lifecycle.Record) {
			if next.Starting() {
				still.set(nil, nil)
				stepUntil(ctx, t, faster, func() bool { return w.record(r.HostKey).RunID == "one" })
			}
		})
		stepUntil(ctx, t, slower, func() bool { return len(slower.Request().Taken) == 1 })
		if got := w.serving("two"); len(got) != 1 || got[0].HostKey == r.HostKey || w.record(r.HostKey).RunID != "one" {
			t.Errorf("the slower request has %+v, and host %s serves run %q", got, r.InstanceID, w.record(r.HostKey).RunID)
		}
	})
}

// TestAReleaseWhileItStarts: the machine is stopped again, and the host is there for the next run.
func TestAReleaseWhileItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, stops(1)), t.Context()
		r := w.stopOne(ctx)
		p, err := w.fleet.NewProvision(demand("next", "q", 1))
		if err != nil {
			t.Fatal(err)
		}
		for w.machine(ctx, r.InstanceID) == lifecycle.MachineStopped {
			if _, err := p.Step(ctx, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		w.releaseQuietly(ctx, "next")
		for range 4 {
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			time.Sleep(10 * time.Second)
		}
		got := w.record(r.HostKey)
		if !got.Startable(time.Now(), 0) || w.machine(ctx, r.InstanceID) != lifecycle.MachineStopped || got.Uses != r.Uses {
			t.Errorf("the host is %s: %+v, and its machine is %s", got.Condition(), got.Stop, w.machine(ctx, r.InstanceID))
		}
	})
}

// lostStart is a store that loses the answer to the write by which a request takes a stopped host.
type lostStart struct {
	fleet.Store
	lost bool
}

func (s *lostStart) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	stored, err := s.Store.UpdateInstance(ctx, r)
	if err == nil && stored.Starting() && !s.lost {
		s.lost = true
		return r, &lifecycle.UnavailableError{What: "update instance", Err: context.DeadlineExceeded}
	}
	return stored, err
}

// starts is a cloud that counts the calls that start a machine.
type starts struct {
	fleet.Compute
	calls int
}

func (c *starts) Start(ctx context.Context, id string) error {
	c.calls++
	return c.Compute.Start(ctx, id)
}

// TestAHostThatAnotherHasStarted: a request that finds that it has a host, and that it runs by now, does not start its machine again.
func TestAHostThatAnotherHasStarted(t *testing.T) {
	inBubbleOf(t, stops(1), func(ctx context.Context, t *testing.T, w *world) {
		r, c := w.stopOne(ctx), &starts{}
		late := w.newFleet("late", stops(1), func(o *fleet.Options) {
			c.Compute = o.Compute
			o.Store, o.Compute = &lostStart{Store: w.store}, c
		})
		p := w.newProvision(late, demand("next", "q", 1))
		for !w.record(r.HostKey).Starting() {
			_, _ = p.Step(ctx, time.Now())
		}
		ready, err := lifecycle.Apply(w.record(r.HostKey), lifecycle.Decision{Action: lifecycle.ActionReady}, time.Now(), lifecycle.DefaultPolicy())
		if err == nil {
			_, err = w.store.UpdateInstance(ctx, ready)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := late.Drive(ctx, p, patience); err != nil {
			t.Fatal(err)
		}
		if len(p.Instances()) != 1 || p.Instances()[0].HostKey != r.HostKey || c.calls > 0 {
			t.Errorf("the request has %+v, and started a machine %d times", p.Instances(), c.calls)
		}
	})
}

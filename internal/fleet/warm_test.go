package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// warmPool wants n fresh hosts of the default pool, on demand.
func warmPool(n int, change ...func(*fleet.WarmPool)) fleet.WarmPool {
	w := fleet.WarmPool{
		Spec: lifecycle.Spec{
			Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: fleet.DefaultInstanceTypes,
		},
		Policy: policy.WarmPolicy{MinimumIdle: n, Lead: 3 * time.Minute},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

// withWarm gives the default pool warm hosts.
func withWarm(warm fleet.WarmPool, change ...func(*fleet.Pool)) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Warm = &warm
		for _, c := range change {
			c(&p)
		}
		o.Pools["default"] = p
	}
}

// inWarmBubble has a fleet with warm hosts that sweeps.
func inWarmBubble(t *testing.T, options func(*fleet.Options), test func(ctx context.Context, t *testing.T, w *world)) {
	t.Helper()
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		go sweepOnceItWaits(ctx, w.fleet)
		test(ctx, t, w)
	})
}

// inBubbleOf is a world with agents, and no sweeper yet.
func inBubbleOf(t *testing.T, options func(*fleet.Options), test func(ctx context.Context, t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		test(ctx, t, w)
	})
}

// fresh are the fresh hosts that may be claimed.
func (w *world) fresh() []lifecycle.Record {
	return slices.DeleteFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool {
		return !r.Unused() || !r.Pooled() || r.Retiring
	})
}

func (w *world) hasFresh(n int) func() bool { return func() bool { return len(w.fresh()) == n } }

func TestWarmHostsServeTheFirstRunOfAnybody(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(2)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		ready := ids(w.fresh())
		began := time.Now()
		p, err := w.provision(ctx, demand("1", "a", 2))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range p.Instances() {
			if !slices.Contains(ready, r.InstanceID) || !p.Request().Taken[i].Reused || r.TrustKey != repository || r.Assignment != 2 || r.RunID != "1" {
				t.Errorf("the run has %s (%+v), want one of %v, reused and bound", r.InstanceID, r, ready)
			}
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s, with hosts that were ready", took)
		}
		w.until("two others in their place", 2*time.Minute, w.hasFresh(2))
		if w.machines() != 4 {
			t.Errorf("%d machines, want 2 at work and 2 ready", w.machines())
		}
	})
}

// A pool that reuses no host has warm ones too: no run was on them.
func TestWarmHostsWithoutReuse(t *testing.T) {
	none := func(p *fleet.Pool) { p.Policy.Reuse = lifecycle.ReuseNone }
	inWarmBubble(t, withWarm(warmPool(1), none), func(ctx context.Context, t *testing.T, w *world) {
		w.until("a fresh host", time.Minute, w.hasFresh(1))
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		w.until("its host has ended", time.Minute, func() bool { return w.record(host.HostKey).State == lifecycle.StateTerminated })
	})
}

// One that no run claims is ended after its time, and another one is there before.
func TestWarmHostsAreReplacedInTime(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsAreReplacedBeforeTheClaimMargin")
	inWarmBubble(t, withWarm(warmPool(1)), func(_ context.Context, t *testing.T, w *world) {
		w.until("a fresh host", time.Minute, w.hasFresh(1))
		first := w.fresh()[0].InstanceID
		for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); time.Sleep(5 * time.Second) {
			if n := len(w.fresh()); n < 1 || n > 2 {
				t.Fatalf("%d fresh hosts after %s", n, 3*time.Hour-time.Until(end))
			}
		}
		if slices.Contains(ids(w.fresh()), first) {
			t.Errorf("host %s waits still, after 3 h", first)
		}
	})
}

// A claim takes no host within the margin before its threshold: the next one is ready
// before that begins. The hosts of this world boot at once, so that the lead is for
// the interval of the sweep.
func TestWarmHostsAreReplacedBeforeTheClaimMargin(t *testing.T) {
	lead := func(p *fleet.WarmPool) { p.Policy.Lead = 40 * time.Second }
	inWarmBubble(t, withWarm(warmPool(1, lead)), func(_ context.Context, t *testing.T, w *world) {
		w.until("a fresh host", time.Minute, w.hasFresh(1))
		margin := w.fleet.Policy("default").ClaimMargin
		for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
			if !slices.ContainsFunc(w.fresh(), func(r lifecycle.Record) bool { return r.Threshold.After(time.Now().Add(margin)) }) {
				t.Fatalf("no fresh host that a run may claim after %s", time.Hour-time.Until(end))
			}
		}
	})
}

// The night wants none, the morning some: they are there when it begins, and gone
// soon after it ends. The bubble begins at midnight, on a Saturday.
func TestWarmHostsByScheduleToZeroAndBack(t *testing.T) {
	racepass.CoveredBy(t, "TestWarmHostsAreReplacedBeforeTheClaimMargin")
	hours, err := policy.ParsePeriod("* 1 * * 6", "UTC", 3, "")
	if err != nil {
		t.Fatal(err)
	}
	scheduled := func(p *fleet.WarmPool) { p.Policy.Schedules = []policy.Period{hours} }
	inWarmBubble(t, withWarm(warmPool(0, scheduled)), func(_ context.Context, t *testing.T, w *world) {
		midnight := time.Now().Truncate(time.Hour)
		at := func(d time.Duration) { time.Sleep(time.Until(midnight.Add(d))) }
		at(56 * time.Minute)
		if w.machines() != 0 {
			t.Errorf("%d machines 4 minutes before the hour", w.machines())
		}
		at(time.Hour)
		if n := len(w.fresh()); n != 3 {
			t.Errorf("%d fresh hosts when the hour begins, want 3", n)
		}
		at(2*time.Hour - time.Second)
		if n := len(w.fresh()); n != 3 {
			t.Errorf("%d fresh hosts at the end of the hour, want 3", n)
		}
		at(2*time.Hour + time.Minute)
		if w.machines() != 0 {
			t.Errorf("%d machines a minute after the hour", w.machines())
		}
	})
}

// Spot is short: the rest is on demand if it may be, and a run that asks for spot
// and may fall back gets those too.
func TestWarmHostsFallBackToOnDemand(t *testing.T) {
	spot := func(p *fleet.WarmPool) { p.Spec.UsageClass, p.Spec.AllowOnDemand = lifecycle.UsageSpot, true }
	inWarmBubble(t, withWarm(warmPool(3, spot)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("three fresh hosts", time.Minute, w.hasFresh(3))
		usage := map[lifecycle.UsageClass]int{}
		for _, r := range w.fresh() {
			usage[r.UsageClass]++
		}
		if usage[lifecycle.UsageSpot] != 1 || usage[lifecycle.UsageOnDemand] != 2 {
			t.Errorf("fresh hosts by usage class: %v, want the one on spot that there is", usage)
		}
		d := demand("1", "a", 3)
		d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, true
		p, err := w.provision(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, taken := range p.Request().Taken {
			if !taken.Reused {
				t.Errorf("host %s was launched, though three were ready", taken.InstanceID)
			}
		}
	})
}

func TestWarmHostsWhileCapacityIsShort(t *testing.T) {
	inWarmBubble(t, func(o *fleet.Options) { withWarm(warmPool(3))(o) }, func(_ context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 2)
		w.until("the two that there are", time.Minute, w.hasFresh(2))
		time.Sleep(5 * time.Minute)
		if n := w.machines(); n != 2 {
			t.Errorf("%d machines", n)
		}
		w.compute.SetCapacity("*", 9)
		w.until("the third once there is room", 2*time.Minute, w.hasFresh(3))
	})
}

// The maximum counts all hosts of the pool, whatever they do.
func TestWarmHostsWithinTheMaximum(t *testing.T) {
	atMost := func(p *fleet.Pool) { p.Maximum = new(4) }
	inWarmBubble(t, withWarm(warmPool(2), atMost), func(ctx context.Context, t *testing.T, w *world) {
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		w.mustProvision(ctx, demand("1", "a", 2))
		w.mustProvision(ctx, demand("2", "b", 1))
		for range 60 {
			time.Sleep(5 * time.Second)
			if n := w.machines(); n > 4 {
				t.Fatalf("%d machines, and 4 may be", n)
			}
		}
		if n := len(w.fresh()); n != 1 {
			t.Errorf("%d fresh hosts beside three at work, want 1", n)
		}
	})
}

// Hosts that never come up are not launched for ever: the pauses grow.
func TestWarmHostsThatDoNotComeUp(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(1)), func(_ context.Context, t *testing.T, w *world) {
		w.set(func() { w.broken["*"] = lifecycle.CauseHost })
		time.Sleep(time.Hour)
		if n := len(w.records()); n < 4 || n > 8 {
			t.Errorf("%d hosts were launched in an hour, all of which failed", n)
		}
		w.set(func() { delete(w.broken, "*") })
		w.until("a fresh host once they come up", 70*time.Minute, w.hasFresh(1))
	})
}

// One whose pre-runner script failed is ended at once, not at its threshold, and
// the next one waits a while.
func TestWarmHostsWhosePreRunnerScriptFails(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(1)), func(_ context.Context, t *testing.T, w *world) {
		w.waitFor(1)
		first := w.records()[0]
		w.set(func() {
			w.forge[first.HostKey] = func(p *lifecycle.Report) {
				p.Signal, p.Cause, p.Detail = lifecycle.SignalFailed, lifecycle.CauseHost, "no disk"
			}
		})
		w.until("it has ended", 15*time.Second, func() bool { return w.record(first.HostKey).State == lifecycle.StateTerminated })
		if why := w.record(first.HostKey).Reason; why != "the pre-runner script failed (cause: host): no disk" {
			t.Errorf("ended since %q", why)
		}
		time.Sleep(50 * time.Second)
		if n := len(w.records()); n != 1 {
			t.Errorf("%d hosts were launched within a minute of a failed one", n)
		}
		w.until("a fresh host", 2*time.Minute, w.hasFresh(1))
	})
}

func TestWarmSweepDry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWarm(warmPool(2)))
		refresh := w.fleet.NewRefresh(true)
		if err := w.fleet.Drive(t.Context(), refresh, patience); err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(refresh.Decisions(), func(d fleet.Decided) bool {
			return d.Sweep == "warm" && d.Action == lifecycle.ActionLaunch && strings.Contains(d.Reason, "warm pool default: 2 wanted")
		})
		if !told || w.machines() != 0 || len(w.records()) != 0 {
			t.Errorf("%d machines, %d records; decisions: %+v", w.machines(), len(w.records()), refresh.Decisions())
		}
	})
}

// Whatever effect a replica dies after, or whose answer it loses, the pool has its
// hosts in the end, none was launched twice, and none is left without a record.
func TestWarmSweepStruckAtAnyEffect(t *testing.T) {
	const wanted = 3
	strike := func(dies bool) func(t *testing.T, at int) *fate {
		return func(t *testing.T, at int) *fate {
			w := newWorld(t, withWarm(warmPool(wanted)))
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			mortal, die := context.WithCancel(ctx)
			f := &fate{at: at}
			if dies {
				f.kill = die
			}
			first := w.newFleet("first", withWarm(warmPool(wanted)), func(o *fleet.Options) {
				o.Store, o.Compute = mortalStore{w.store, f}, mortalCompute{w.compute, f}
			})
			go w.agents(ctx)
			go first.Sweep(mortal)
			go func() {
				<-mortal.Done()
				if ctx.Err() == nil {
					w.fleet.Sweep(ctx)
				}
			}()
			for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
				if n := w.machines(); n > wanted {
					t.Fatalf("%d machines, and %d are wanted", n, wanted)
				}
			}
			if n := len(w.fresh()); n != wanted || len(w.records()) != wanted {
				t.Fatalf("%d fresh hosts of %d that ever were, want %d", n, len(w.records()), wanted)
			}
			w.mustProvision(ctx, demand("1", "a", 2))
			w.until("two others in their place", 5*time.Minute, w.hasFresh(wanted))
			if n := len(w.records()); n != wanted+2 {
				t.Errorf("%d hosts ever were, want %d", n, wanted+2)
			}
			die()
			return f
		}
	}
	t.Run("dies", func(t *testing.T) { strikeEach(t, strike(true)) })
	t.Run("loses the answer", func(t *testing.T) { strikeEach(t, strike(false)) })
}

// Two replicas sweep at once, in any order of their steps: they launch what is
// wanted, once.
func TestWarmSweepsOfTwoReplicas(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, withWarm(warmPool(3)))
				other := w.newFleet("b", withWarm(warmPool(3)))
				draw := rand.New(rand.NewPCG(seed, 1))
				for range 2 {
					ops := []fleet.Op{w.fleet.NewWarmSweep(), other.NewWarmSweep()}
					for len(ops) > 0 {
						i := draw.IntN(len(ops))
						p, err := ops[i].Step(t.Context(), time.Now())
						if err != nil {
							t.Fatal(err)
						}
						if p.Done {
							ops = slices.Delete(ops, i, i+1)
						}
					}
				}
				if w.machines() != 3 || len(w.records()) != 3 {
					t.Errorf("%d machines with %d records, want 3", w.machines(), len(w.records()))
				}
			})
		})
	}
}

// While a launch is not recorded yet its machines are not leaked, though the pool
// may have no warm hosts any longer: the due sweep records them then.
func TestWarmLaunchIsNoLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWarm(warmPool(1)))
		f := &fate{at: 2} // the row, then the launch
		f.kill = func() {}
		mortal := w.newFleet("first", withWarm(warmPool(1)), func(o *fleet.Options) {
			o.Store, o.Compute = mortalStore{w.store, f}, mortalCompute{w.compute, f}
		})
		_ = mortal.Drive(t.Context(), mortal.NewWarmSweep(), 0)
		if w.machines() != 1 || len(w.records()) != 0 {
			t.Fatalf("%d machines, %d records: the test needs one without", w.machines(), len(w.records()))
		}
		time.Sleep(10 * time.Minute)
		sweep := func(f *fleet.Fleet) int {
			if err := f.Drive(t.Context(), f.NewCloudSweep(), patience); err != nil {
				t.Fatal(err)
			}
			return w.machines()
		}
		if sweep(w.fleet) != 1 {
			t.Error("a machine of a launch under way was called leaked")
		}
		if sweep(w.newFleet("without")) != 1 {
			t.Error("a machine of a launch under way was called leaked, since its pool has no warm hosts any more")
		}
	})
}

// A launch that was cut short long ago is not made again: what it made is recorded,
// and what is still missing is decided on again.
func TestWarmLaunchCutShortLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWarm(warmPool(2)))
		f := &fate{at: 2}
		f.kill = func() {}
		w.compute.SetCapacity("*", 1)
		mortal := w.newFleet("first", withWarm(warmPool(2)), func(o *fleet.Options) {
			o.Store, o.Compute = mortalStore{w.store, f}, mortalCompute{w.compute, f}
		})
		_ = mortal.Drive(t.Context(), mortal.NewWarmSweep(), 0)
		time.Sleep(time.Hour)
		w.compute.SetCapacity("*", 9)
		if err := w.fleet.Drive(t.Context(), w.fleet.NewWarmSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if w.machines() != 1 || len(w.records()) != 1 {
			t.Errorf("%d machines, %d records: want the one that was made", w.machines(), len(w.records()))
		}
		if err := w.fleet.Drive(t.Context(), w.fleet.NewWarmSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if w.machines() != 2 || len(w.records()) != 2 {
			t.Errorf("%d machines, %d records after the next sweep, want 2", w.machines(), len(w.records()))
		}
	})
}

// A host that is too many ends with a reason that names its pool, and by how many.
func TestWarmHostsThatAreTooMany(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(3)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("three fresh hosts", time.Minute, w.hasFresh(3))
		less := w.newFleet("less", withWarm(warmPool(1)))
		for _, op := range []fleet.Op{less.NewWarmSweep(), less.NewDueSweep()} {
			if err := less.Drive(ctx, op, patience); err != nil {
				t.Fatal(err)
			}
		}
		ended := w.records(lifecycle.StateTerminated)
		if len(ended) != 2 {
			t.Errorf("%d hosts ended, want 2", len(ended))
		}
		for _, r := range ended {
			if want := "not wanted in warm pool default: 1 wanted (minimum_idle), 3 idle and 0 coming: 2 too many"; r.Reason != want {
				t.Errorf("host %s ended since %q, want %q", r.InstanceID, r.Reason, want)
			}
		}
	})
}

// A pool whose room others have goes on being looked after: its row is not due, its
// hosts are what the row names, and one of a class that is not wanted any more goes.
func TestWarmHostsOfAFullPool(t *testing.T) {
	inBubbleOf(t, withWarm(warmPool(2), func(p *fleet.Pool) { p.Maximum = new(4) }), func(ctx context.Context, t *testing.T, w *world) {
		other := lifecycle.Request{
			Repository: repository, RunID: "1", RequestID: "a", Spec: lifecycle.Spec{Pool: "default"}, Launch: &lifecycle.LaunchOrder{Number: 1, Count: 3},
		}
		if err := w.store.CreateRequest(ctx, other); err != nil {
			t.Fatal(err)
		}
		taken := ledger.Quota{Name: ofPool}.With(ledger.Reservation{
			Repository: repository, RunID: "1", RequestID: "a", Launch: 1, Hosts: 3, At: time.Now(),
		})
		if _, err := w.store.UpdateQuotaLedger(ctx, taken); err != nil {
			t.Fatal(err)
		}
		sweep := func(f *fleet.Fleet, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(30 * time.Second) {
				for _, op := range []fleet.Op{f.NewWarmSweep(), f.NewDueSweep()} {
					if err := f.Drive(ctx, op, patience); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		sweep(w.fleet, 10*time.Minute)
		q, err := w.store.Request(ctx, warmrequest.Repository, "warm:default", "warm:default")
		if err != nil || !q.DueAt.After(time.Now()) || len(w.fresh()) != 1 {
			t.Fatalf("%d fresh hosts, and the row is due at %s (now %s), error %v; want one host, for which there is room", len(w.fresh()), q.DueAt, time.Now(), err)
		}
		old := w.fresh()[0]
		spot := func(p *fleet.WarmPool) { p.Spec.UsageClass = lifecycle.UsageSpot }
		sweep(w.newFleet("spot", withWarm(warmPool(2, spot), func(p *fleet.Pool) { p.Maximum = new(4) })), 5*time.Minute)
		want := "not wanted in warm pool default: it is of class large on on-demand, and its fresh hosts are of class large on spot now"
		if r := w.record(old.HostKey); r.State != lifecycle.StateTerminated || r.Reason != want {
			t.Errorf("the host of the old class is %s, since %q", r.State, r.Reason)
		}
		if fresh := w.fresh(); len(fresh) != 1 || fresh[0].UsageClass != lifecycle.UsageSpot {
			t.Errorf("fresh hosts: %+v, want one on spot in its place", fresh)
		}
	})
}

// What spot lacks is launched on demand by the same sweep, and the next sweep finds nothing to do.
func TestWarmHostsFallBackInOneSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spot := func(p *fleet.WarmPool) { p.Spec.UsageClass, p.Spec.AllowOnDemand = lifecycle.UsageSpot, true }
		w := newWorld(t, withWarm(warmPool(3, spot)))
		for range 2 {
			w.sweepOnce(t.Context(), w.fleet.NewWarmSweep())
			if w.machines() != 3 || len(w.records()) != 3 {
				t.Errorf("%d machines, %d records, want 3", w.machines(), len(w.records()))
			}
		}
	})
}

// Room that another request takes, once the launch is written down, is not used twice: the launch is given up. While the ledger is away the launch stays.
func TestWarmLaunchWithoutRoom(t *testing.T) {
	for name, away := range map[string]bool{"another request takes it": false, "the ledger is away": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledgers := &awayLedgers{}
				w := newWorld(t, withWarm(warmPool(2), func(p *fleet.Pool) { p.Maximum = new(2) }), func(o *fleet.Options) { ledgers.GuardStore, o.Guards = o.Guards, ledgers })
				ctx := t.Context()
				row := func() *lifecycle.LaunchOrder {
					q, err := w.store.Request(ctx, warmrequest.Repository, "warm:default", "warm:default")
					if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
						t.Fatal(err)
					}
					return q.Launch
				}
				sweep := w.fleet.NewWarmSweep()
				for range 10 {
					if _, err := sweep.Step(ctx, time.Now()); err != nil {
						t.Fatal(err)
					}
					if row() != nil {
						break
					}
				}
				if away {
					ledgers.away = true
					if _, err := sweep.Step(ctx, time.Now()); !errors.Is(err, lifecycle.ErrUnavailable) || row() == nil {
						t.Errorf("error %v, and the launch is %+v; want that it waits for the ledger", err, row())
					}
					ledgers.away = false
					w.sweepOnce(ctx, sweep)
					if n := w.machines(); n != 2 {
						t.Errorf("%d machines once the ledger is back, want 2", n)
					}
					return
				}
				taken := ledger.Quota{Name: ofPool}.With(ledger.Reservation{Repository: repository, RunID: "1", RequestID: "a", Launch: 1, Hosts: 1, At: time.Now()})
				if _, err := w.store.UpdateQuotaLedger(ctx, taken); err != nil {
					t.Fatal(err)
				}
				done := false
				for range 10 {
					p, err := sweep.Step(ctx, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					if done = p.Done; done {
						break
					}
				}
				if !done || row() != nil || w.machines() != 0 {
					t.Fatalf("done: %t, launch %+v, %d machines; want that the launch was given up", done, row(), w.machines())
				}
				w.sweepOnce(ctx, w.fleet.NewWarmSweep())
				if n := w.machines(); n != 1 {
					t.Errorf("%d machines after the next sweep, want one for the room that is left", n)
				}
			})
		})
	}
}

// awayLedgers does not answer to the read of a ledger.
type awayLedgers struct {
	fleet.GuardStore
	away bool
}

func (s *awayLedgers) QuotaLedger(ctx context.Context, name string) (ledger.Quota, error) {
	if s.away {
		return ledger.Quota{}, lifecycle.ErrUnavailable
	}
	return s.GuardStore.QuotaLedger(ctx, name)
}

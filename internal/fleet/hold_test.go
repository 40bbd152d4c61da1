package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// holdScenes are hosts that are about to be ended, each for another reason.
var holdScenes = map[string]func(ctx context.Context, w *world){
	"idle until its threshold": func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
	},
	"at its maximum runtime": func(ctx context.Context, w *world) {
		d := demand("1", "a", 2)
		d.Spec.MaxRuntime = 2 * time.Minute
		records := w.mustProvision(ctx, d)
		w.set(func() { w.busy[records[0].HostKey] = true })
	},
	"of a pool that does not reuse hosts": func(ctx context.Context, w *world) {
		d := demand("1", "a", 2)
		d.Spec.Pool = "once"
		w.mustProvision(ctx, d)
		go w.releaseQuietly(ctx, "1")
	},
	"silent while idle": func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demand("1", "a", 3))
		w.release(ctx, "1", true)
		w.set(func() { w.deaf[w.records()[0].HostKey] = true })
	},
	"silent and impaired": func(ctx context.Context, w *world) {
		r := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.deaf[r.HostKey] = true })
		w.compute.Impair(r.InstanceID, true)
	},
	"interrupted without work": func(ctx context.Context, w *world) {
		r := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() {
			w.forge[r.HostKey] = func(p *lifecycle.Report) { p.InterruptionAt = time.Now().Add(time.Hour) }
		})
	},
	"never ready": func(ctx context.Context, w *world) {
		d := demand("1", "a", 2)
		d.Spec.Timeout = 2 * time.Minute
		w.set(func() { w.mute = true })
		go w.provisionQuietly(ctx, d)
		w.waitFor(2)
	},
	"released before it was ready": func(ctx context.Context, w *world) {
		w.set(func() { w.mute = true })
		go w.provisionQuietly(ctx, demand("1", "a", 2))
		w.waitFor(2)
		go w.releaseQuietly(ctx, "1")
	},
	"failed to register": func(ctx context.Context, w *world) {
		w.set(func() { w.broken["*"] = lifecycle.CauseNone }) // before its agent speaks for the first time
		go w.provisionQuietly(ctx, demand("1", "a", 1))
		w.waitFor(1)
		w.set(func() {
			delete(w.broken, "*")
			w.broken[w.records()[0].HostKey] = lifecycle.CauseNone
		})
	},
	"without a record": func(ctx context.Context, w *world) {
		if _, err := w.compute.Launch(ctx, lifecycle.LaunchOrder{
			Token: "t", RequestID: "q", Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: "9",
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"c*"},
		}); err != nil {
			w.t.Fatal(err)
		}
	},
	"retired by a notice": func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		r := w.records()[0]
		r.Retiring, r.DueAt = true, time.Now()
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			w.t.Fatal(err)
		}
	},
	"ended on paper just before": func(ctx context.Context, w *world) {
		r := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.deaf[r.HostKey] = true })
		next, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "a test"}, time.Now(), lifecycle.DefaultPolicy())
		if err == nil {
			_, err = w.store.UpdateInstance(ctx, next)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	},
}

func (w *world) releaseQuietly(ctx context.Context, run string) {
	_ = w.fleet.Drive(ctx, w.fleet.NewRelease(repository, run, 0, false), patience)
}

func (w *world) provisionQuietly(ctx context.Context, d fleet.Demand) {
	if p, err := w.fleet.NewProvision(d); err == nil {
		_ = w.fleet.Drive(ctx, p, patience)
	}
}

// waitFor waits until so many hosts have a record.
func (w *world) waitFor(hosts int) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); len(w.records()) < hosts; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%d hosts were launched, want %d", len(w.records()), hosts)
		}
	}
}

func (w *world) hold(ctx context.Context, f *fleet.Fleet, d time.Duration) {
	w.t.Helper()
	if _, _, err := f.HoldFleet(ctx, d, "looking", "CN=ops", time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// endThemselves lets each host do by its record what its agent would, as seldom as
// an agent looks at it.
func (w *world) endThemselves(ctx context.Context, ended func(r lifecycle.Record, why string)) {
	for ctx.Err() == nil {
		for _, r := range w.records() {
			d := agent.Decide(agent.Facts{
				Record: &r, Confirmed: true, BootTimeout: time.Hour, Memory: agent.Memory{StartedAt: r.CreatedAt},
			}, time.Now())
			if d.Effect == agent.EffectPowerOff && w.compute.Kill(r.InstanceID) {
				ended(r, d.Reason)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

// A hold works while the disk is full, and is stored once there is room again. A later one that another replica has stored wins.
func TestAHoldOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		var full atomic.Bool
		f := w.newFleet("on a full disk", func(o *fleet.Options) { o.Guards = fullGuards{GuardStore: w.store, full: &full} })
		holds := func(what string, want bool) {
			t.Helper()
			h, err := f.FleetHold(ctx)
			if err != nil || h.InForce(time.Now()) != want {
				t.Errorf("%s: %v, %v", what, h, err)
			}
		}
		stored := func() bool {
			h, err := w.store.FleetHold(ctx)
			return err == nil && h.InForce(time.Now())
		}
		full.Store(true)
		h, kept, err := f.HoldFleet(ctx, time.Hour, "looking", "CN=ops", time.Now())
		if err != nil || kept || !h.InForce(time.Now()) {
			t.Fatalf("hold %v, stored %t, %v", h, kept, err)
		}
		holds("on a full disk", true)
		if stored() {
			t.Error("a full disk has stored the hold")
		}
		if _, _, err := f.HoldFleet(ctx, 0, "", "CN=ops", time.Now()); err == nil {
			t.Error("a hold was taken away on a full disk, and would come back")
		}
		full.Store(false)
		holds("with room again", true)
		if !stored() {
			t.Error("the hold is not stored although there is room again")
		}
		full.Store(true)
		time.Sleep(time.Second)
		if _, kept, err := f.HoldFleet(ctx, 2*time.Hour, "", "CN=ops", time.Now()); err != nil || kept {
			t.Fatalf("stored %t, %v", kept, err)
		}
		time.Sleep(time.Second)
		w.hold(ctx, w.fleet, 0)
		holds("taken away by another replica", false)
		full.Store(false)
		holds("and after that", false)
	})
}

// A hold that was kept on a full disk does not come back once an order was stored after it, though the clock has not moved on.
func TestAHoldOnAFullDiskIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		w := newWorld(t, func(o *fleet.Options) { o.Guards = fullGuards{GuardStore: o.Guards, full: &full} })
		full.Store(true)
		for _, d := range []time.Duration{time.Hour, 0} {
			if _, stored, err := w.fleet.HoldFleet(t.Context(), d, "", "CN=ops", time.Now()); err != nil || stored == full.Load() {
				t.Fatalf("hold for %s: stored %t, %v", d, stored, err)
			}
			full.Store(false)
		}
		if h, err := w.fleet.FleetHold(t.Context()); err != nil || h.InForce(time.Now()) {
			t.Errorf("the hold is back: %v, %v", h, err)
		}
	})
}

// The disk is full again when the hold that was kept has just been stored, and another hold comes: that one is kept.
func TestAHoldWhileTheLastOneIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		var full atomic.Bool
		var f *fleet.Fleet
		hold := func(d time.Duration) {
			if _, stored, err := f.HoldFleet(ctx, d, "", "CN=ops", time.Now()); err != nil || stored {
				t.Errorf("hold for %s: stored %t, %v", d, stored, err)
			}
		}
		again := sync.OnceFunc(func() {
			full.Store(true)
			time.Sleep(time.Second)
			hold(2 * time.Hour)
		})
		f = w.newFleet("on a full disk", func(o *fleet.Options) { o.Guards = fullGuards{w.store, &full, again} })
		full.Store(true)
		hold(time.Hour)
		full.Store(false)
		for range 2 { // the first look stores the first hold
			if _, err := f.FleetHold(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if h, err := f.FleetHold(ctx); err != nil || !h.InForce(time.Now().Add(90*time.Minute)) {
			t.Errorf("the second hold is lost: %v, %v", h, err)
		}
	})
}

// Whatever would end a host, a hold on the fleet stops it, and its agent does not
// do it either. Once the hold is taken away, all of it happens.
func TestAHeldFleetEndsNothing(t *testing.T) {
	racepass.CoveredBy(t, "TestAHoldThatGoesOn")
	for name, scene := range holdScenes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				scene(ctx, w)
				w.hold(ctx, w.fleet, time.Hour)
				if err := w.fleet.Drive(ctx, w.fleet.NewDueSweep(), patience); err != nil {
					t.Fatal(err)
				}
				held := true
				go w.endThemselves(ctx, func(r lifecycle.Record, why string) {
					if held {
						t.Errorf("the agent of %s ended it in a held fleet: %s", r.InstanceID, why)
					}
				})
				go w.fleet.Sweep(ctx)
				machines, ended := w.machines(), len(w.records(lifecycle.StateTerminated))
				time.Sleep(12 * time.Minute)
				if n := w.machines(); n != machines {
					t.Errorf("%d machines are left of %d", n, machines)
				}
				if n := len(w.records(lifecycle.StateTerminated)); n != ended {
					t.Errorf("%d hosts were ended", n-ended)
				}
				held = false
				w.hold(ctx, w.fleet, 0)
				time.Sleep(7 * time.Minute)
				if n := w.machines(); n >= machines {
					t.Errorf("%d machines are left after the hold, of %d", n, machines)
				}
				for _, r := range w.records() {
					if r.FleetHeld {
						t.Errorf("host %s bears the mark of a hold that was taken away", r.InstanceID)
					}
				}
			})
		})
	}
}

// An order and a refresh are stopped too, and say why; what is there is used on.
func TestOrdersInAHeldFleet(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		idle := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		w.hold(ctx, w.fleet, time.Hour)
		_, err := w.fleet.Terminate(ctx, idle.InstanceID, "", time.Now())
		var held *fleet.FleetHeldError
		if !errors.As(err, &held) || !strings.Contains(err.Error(), "by CN=ops (looking)") {
			t.Errorf("an order to end a host: %v", err)
		}
		if r := w.mustProvision(ctx, demand("2", "b", 1))[0]; r.InstanceID != idle.InstanceID {
			t.Errorf("run 2 got %s, want the idle %s", r.InstanceID, idle.InstanceID)
		}
		w.release(ctx, "2", true)
		time.Sleep(6 * time.Minute)
		refresh := w.fleet.NewRefresh(true)
		if err := w.fleet.Drive(ctx, refresh, patience); err != nil {
			t.Fatal(err)
		}
		for _, d := range refresh.Decisions() {
			if d.Action != lifecycle.ActionKeep || !strings.Contains(d.Reason, "the fleet is held until") ||
				!strings.HasSuffix(d.Reason, "else it would be ended: idle until its threshold") {
				t.Errorf("a refresh decides to %s %s: %s", d.Action, d.InstanceID, d.Reason)
			}
		}
		if _, _, err := w.fleet.HoldFleet(ctx, 25*time.Hour, "", "", time.Now()); err == nil {
			t.Error("a hold of 25 h was taken")
		}
		if _, _, err := w.fleet.HoldFleet(ctx, -time.Second, "", "", time.Now()); err == nil {
			t.Error("a hold of -1 s was taken")
		}
	})
}

// A hold that is made longer in its last seconds reaches every agent before the
// first one's time is up, and so it does where an operator's own hold ends or is
// taken away.
func TestAHoldThatGoesOn(t *testing.T) {
	for name, prolong := range map[string]func(ctx context.Context, w *world, r lifecycle.Record){
		"longer": func(ctx context.Context, w *world, _ lifecycle.Record) {
			w.hold(ctx, w.fleet, 10*time.Minute)
			time.Sleep(10*time.Minute - time.Second)
			w.hold(ctx, w.fleet, time.Hour)
		},
		"longer than the host's own": func(ctx context.Context, w *world, r lifecycle.Record) {
			w.holdHost(ctx, r, 8*time.Minute)
			w.hold(ctx, w.fleet, time.Hour)
		},
		"the host's own is taken away": func(ctx context.Context, w *world, r lifecycle.Record) {
			w.holdHost(ctx, r, time.Hour)
			w.hold(ctx, w.fleet, time.Hour)
			time.Sleep(8*time.Minute + time.Second)
			w.holdHost(ctx, r, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				r := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.release(ctx, "1", true)
				go w.endThemselves(ctx, func(r lifecycle.Record, why string) { t.Errorf("the agent of %s ended it: %s", r.InstanceID, why) })
				prolong(ctx, w, r)
				time.Sleep(15 * time.Minute)
				if w.machines() != 1 {
					t.Error("the host was ended")
				}
			})
		})
	}
}

func (w *world) holdHost(ctx context.Context, r lifecycle.Record, d time.Duration) {
	w.t.Helper()
	if _, err := w.fleet.Hold(ctx, r.InstanceID, d, "", time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// While it is not known whether the fleet is held, nothing is ended.
func TestAHoldThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guards := &awayGuards{}
		w := newWorld(t, func(o *fleet.Options) { guards.GuardStore, o.Guards = o.Guards, guards })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		time.Sleep(7 * time.Minute)
		if n := len(w.records(lifecycle.StateTerminated)); n != 0 || w.machines() != 1 {
			t.Errorf("%d hosts were ended, %d machines are left", n, w.machines())
		}
	})
}

type awayGuards struct{ fleet.GuardStore }

func (awayGuards) FleetHold(context.Context) (fleethold.Hold, error) {
	return fleethold.Hold{}, &lifecycle.UnavailableError{What: "hold", Err: context.DeadlineExceeded}
}

// Whatever effect a replica dies after, or whose answer is lost, a held fleet is
// held, and afterwards all that is due is done.
func TestACrashInAHeldFleet(t *testing.T) {
	for _, dies := range []bool{true, false} {
		strikeEach(t, func(t *testing.T, at int) *fate { return holdAt(t, at, dies) })
	}
}

func holdAt(t *testing.T, at int, dies bool) *fate {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	mortal, die := context.WithCancel(ctx)
	defer die()
	f := &fate{at: at}
	if dies {
		f.kill = die
	}
	first := w.newFleet("first", func(o *fleet.Options) {
		o.Store, o.Guards = mortalStore{w.store, f}, mortalStore{w.store, f}
	})
	go w.agents(ctx)
	w.mustProvision(ctx, demand("1", "a", 2))
	w.release(ctx, "1", true)
	hold := func(d time.Duration) {
		_, stored, err := first.HoldFleet(ctx, d, "", "", time.Now())
		for ; err != nil || !stored; _, stored, err = w.fleet.HoldFleet(ctx, d, "", "", time.Now()) {
			time.Sleep(time.Second)
		}
	}
	hold(time.Hour)
	held := true
	go w.endThemselves(ctx, func(r lifecycle.Record, why string) {
		if held {
			t.Errorf("the agent of %s ended it in a held fleet: %s", r.InstanceID, why)
		}
	})
	go first.Sweep(mortal)
	go func() {
		select {
		case <-mortal.Done():
			w.fleet.Sweep(ctx)
		case <-ctx.Done():
		}
	}()
	time.Sleep(8 * time.Minute)
	if n := len(w.records(lifecycle.StateTerminated)); n != 0 || w.machines() != 2 {
		t.Errorf("%d hosts were ended, %d machines are left", n, w.machines())
	}
	held = false
	hold(0)
	time.Sleep(3 * time.Minute)
	if n := w.machines(); n != 0 {
		t.Errorf("%d machines are left", n)
	}
	return f
}

// A host that is heard again is not due to end any more: it may be claimed, held
// fleet or not.
func TestTheMarkOfAHoldGoesWithItsCause(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		key := w.records()[0].HostKey
		w.hold(ctx, w.fleet, time.Hour)
		w.set(func() { w.deaf[key] = true })
		time.Sleep(2 * time.Minute)
		if !w.record(key).FleetHeld {
			t.Error("a silent host of a held fleet bears no mark")
		}
		w.set(func() { w.deaf[key] = false })
		time.Sleep(90 * time.Second)
		if r := w.record(key); r.FleetHeld || r.Held(time.Now()) {
			t.Error("the mark is still there")
		}
	})
}

// Many hosts of a held fleet are silent as they are released. None is ended for it, by controld or by its agent, which
// reads its record anyway.
func TestAHeldFleetInWhichManyHostsAreSilent(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 5))
		w.deafen(w.records())
		w.release(ctx, "1", false)
		w.hold(ctx, w.fleet, time.Hour)
		go w.endThemselves(ctx, func(r lifecycle.Record, why string) { t.Errorf("the agent of %s ended it: %s", r.InstanceID, why) })
		time.Sleep(30 * time.Minute)
		if n := w.machines(); n != 5 {
			t.Errorf("%d of 5 machines are left", n)
		}
	})
}

// The agent of a host whose pre-runner script failed ends it after a minute: the
// mark is there before, though no request waits for the host.
func TestAFailedScriptInAHeldFleet(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		abandoned, leave := context.WithCancel(ctx)
		go w.provisionQuietly(abandoned, demand("1", "a", 1))
		w.waitFor(1)
		leave()
		w.hold(ctx, w.fleet, time.Hour)
		key := w.records()[0].HostKey
		w.set(func() {
			w.mute = false
			w.forge[key] = func(p *lifecycle.Report) { p.Signal = lifecycle.SignalFailed }
		})
		time.Sleep(50 * time.Second)
		if !w.record(key).FleetHeld {
			t.Error("the host bears no mark")
		}
	})
}

// Scale-down marks no host in a held fleet and takes none from GitHub. If the
// hold comes in the middle of an end, the end goes on once the hold is taken away.
func TestAScaleDownOfAHeldFleet(t *testing.T) {
	for name, midway := range map[string]bool{"before it": false, "after a registration was deleted": true} {
		t.Run(name, func(t *testing.T) {
			inScaleDown(t, policy.ScaleDown{}, 2, func(t *testing.T, s *scaleDownScene) {
				hold := func() {
					if h, err := s.fleet.FleetHold(t.Context()); err == nil && !h.InForce(time.Now()) {
						s.hold(t.Context(), s.fleet, time.Hour)
					}
				}
				if s.github.deleting = func(int64) error { hold(); return nil }; !midway {
					hold()
				}
				registered := len(s.github.names())
				s.sweepDown()
				if n := len(s.records(lifecycle.StateTerminated)); n != 0 {
					t.Errorf("%d hosts were ended", n)
				}
				if n, want := len(s.github.names()), registered-map[bool]int{true: 1}[midway]; n != want {
					t.Errorf("%d registrations are left, want %d", n, want)
				}
				s.github.deleting = nil
				s.hold(t.Context(), s.fleet, 0)
				s.sweepDown()
				s.ends(s.hosts...)
			})
		})
	}
}

// A sweep that met the hold ends what it finds after the hold was taken away.
func TestAHoldThatIsTakenAwayDuringASweep(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		time.Sleep(6 * time.Minute) // EC2's word on a new machine is not sure
		w.deafen(hosts)
		end := func(r lifecycle.Record) {
			next, err := lifecycle.Apply(w.record(r.HostKey), lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "a test"}, time.Now(), lifecycle.DefaultPolicy())
			if err == nil {
				_, err = w.store.UpdateInstance(ctx, next)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.hold(ctx, w.fleet, time.Hour)
		sweep := w.fleet.NewDueSweep()
		end(hosts[0])
		stepUntil(ctx, t, sweep, func() bool { return w.record(hosts[0].HostKey).FleetHeld })
		w.hold(ctx, w.fleet, 0)
		end(hosts[1])
		w.sweepOnce(ctx, sweep)
		if n, r := w.machines(), w.record(hosts[1].HostKey); n != 1 || r.FleetHeld {
			t.Errorf("%d machines, and the host that was ended after the hold is kept by it: %t (%s)", n, r.FleetHeld, r.Reason)
		}
	})
}

package fleet_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// stopsFresh has the default pool launch hosts to have them stopped.
func stopsFresh(fresh fleet.WarmPool, change ...func(*fleet.Pool)) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		fresh.Policy.Key = "stopped.minimum"
		p.Stopped, p.Policy.StopsFresh = &fresh, true
		for _, c := range change {
			c(&p)
		}
		o.Pools["default"] = p
	}
}

// freshStopped are the stopped hosts that a run of any repository could have started.
func (w *world) freshStopped() []lifecycle.Record {
	return slices.DeleteFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool {
		return !r.Unused() || !r.Startable(time.Now(), 0)
	})
}

func (w *world) hasStopped(n int) func() bool {
	return func() bool { return len(w.freshStopped()) == n }
}

// TestFreshHostsAreStopped until a run of whatever repository has one started, and others take their place. No message offers one before.
func TestFreshHostsAreStopped(t *testing.T) {
	for _, reuse := range []lifecycle.Reuse{lifecycle.ReuseSameRepository, lifecycle.ReuseNone} {
		options := stopsFresh(warmPool(2), func(p *fleet.Pool) { p.Policy.Reuse = reuse })
		inWarmBubble(t, options, func(ctx context.Context, t *testing.T, w *world) {
			w.until("two stopped hosts", 3*time.Minute, w.hasStopped(2))
			ready := ids(w.freshStopped())
			for _, id := range ready {
				if got := w.machine(ctx, id); got != lifecycle.MachineStopped {
					t.Errorf("the machine of %s is %s", id, got)
				}
			}
			if len(w.allRecords()) != 2 {
				t.Errorf("%d hosts were launched, want 2", len(w.allRecords()))
			}
			p, err := w.provision(ctx, demand("1", "a", 1))
			if err != nil {
				t.Fatal(err)
			}
			r := p.Instances()[0]
			if !slices.Contains(ready, r.InstanceID) || r.TrustKey != repository || r.Uses != 1 || r.Stop != nil {
				t.Errorf("with reuse %s the run has %+v, want one of %v, bound to its repository", reuse, r, ready)
			}
			w.until("two stopped hosts again", 3*time.Minute, w.hasStopped(2))
			if slices.Contains(ids(w.freshStopped()), r.InstanceID) {
				t.Errorf("host %s of a run is among the stopped ones", r.InstanceID)
			}
		})
	}
}

// TestUsedHostsLeaveRoomForFreshStoppedOnes: the count of one kind is not that of the other.
func TestUsedHostsLeaveRoomForFreshStoppedOnes(t *testing.T) {
	options := stopsFresh(warmPool(1), func(p *fleet.Pool) { p.Policy.StoppedMaximum, p.Policy.IdleTime = 1, time.Minute })
	inWarmBubble(t, options, func(ctx context.Context, t *testing.T, w *world) {
		w.until("a stopped host", 3*time.Minute, w.hasStopped(1))
		if _, err := w.provision(ctx, demand("1", "a", 1)); err != nil {
			t.Fatal(err)
		}
		w.until("another one", 3*time.Minute, w.hasStopped(1))
		w.releaseQuietly(ctx, "1")
		w.until("the used one stopped, too", 5*time.Minute, func() bool {
			stopped := slices.DeleteFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool { return !r.Stopped() })
			return len(stopped) == 2 && len(w.freshStopped()) == 1
		})
	})
}

// TestFreshStoppedHostsGo when the configuration has no minimum any more.
func TestFreshStoppedHostsGo(t *testing.T) {
	inBubbleOf(t, stopsFresh(warmPool(1)), func(ctx context.Context, t *testing.T, w *world) {
		before, cancel := context.WithCancel(ctx)
		go sweepOnceItWaits(before, w.fleet)
		w.until("a stopped host", 3*time.Minute, w.hasStopped(1))
		cancel()
		go sweepOnceItWaits(ctx, w.newFleet("b"))
		w.until("its end", 10*time.Minute, func() bool { return len(w.records(lifecycle.StateIdle)) == 0 })
	})
}

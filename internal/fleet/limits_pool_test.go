package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const ofPool = "pool/default"

// atMost bounds the pool that requests are for when they name none.
func atMost(hosts int) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Maximum = &hosts
		o.Pools["default"] = p
	}
}

// below reports, and fails otherwise, whether the cloud has no more machines than may
// be, and than are accounted for.
func (w *world) below(hosts int) bool {
	n, used := w.machines(), w.used(ofPool)
	if n > hosts || n > used {
		w.t.Helper()
		w.t.Errorf("%d machines, where %d may be, and %d are accounted for", n, hosts, used)
	}
	return n <= hosts && n <= used
}

// watched holds a world against a condition all the time.
func watched(ctx context.Context, ok func() bool) {
	for ctx.Err() == nil && ok() {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A request for more hosts than its pool may ever have is short at once, and a pool with a maximum of 0 launches none.
func TestMoreThanTheMaximum(t *testing.T) {
	for maximum, minimum := range map[int]int{0: 1, 2: 3} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, atMost(maximum))
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go w.agents(ctx)
			begun := time.Now()
			_, err := w.provision(ctx, demandOf(repository, "1", minimum, minimum, 20*time.Minute))
			var short *fleet.ShortError
			want := fmt.Sprintf("pools.default.maximum allows default %d hosts at once", maximum)
			if !errors.As(err, &short) || !strings.Contains(short.Why, want) || time.Since(begun) > time.Minute {
				t.Errorf("after %s: %v, want %q", time.Since(begun), err, want)
			}
			if n := w.machines(); n > 0 {
				t.Errorf("%d machines were launched", n)
			}
		})
	}
}

// A full pool still gives its idle hosts, launches none, and says which runs have them.
func TestAFullPool(t *testing.T) {
	racepass.CoveredBy(t, "TestAMaximumUnderConcurrency")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, atMost(2))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		go watched(ctx, func() bool { return w.below(2) })
		w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute))
		_, err := w.provision(ctx, demandOf(repository, "2", 1, 1, time.Minute))
		var short *fleet.ShortError
		want := "pools.default.maximum allows default 2 hosts at once, and none is left: for run 1 2 were launched; of its hosts a used one leaves once it was idle for 5m0s"
		if !errors.As(err, &short) || !strings.Contains(short.Why, want) {
			t.Errorf("at the timeout: %v", err)
		}
		w.release(ctx, "1", true)
		for _, r := range w.mustProvision(ctx, demandOf(repository, "3", 2, 2, time.Minute)) {
			if r.Assignment < 2 {
				t.Errorf("host %s is new", r.InstanceID)
			}
		}
		w.release(ctx, "3", true)
		begun := time.Now() // the idle hosts are of another repository, and go in five minutes
		w.mustProvision(ctx, demandOf("acme/lib", "4", 2, 2, 10*time.Minute))
		if d := time.Since(begun); d < 4*time.Minute || d > 7*time.Minute {
			t.Errorf("the other repository waited %s", d)
		}
		if err := w.fleet.Drive(ctx, w.fleet.NewRelease("acme/lib", "4", 0, true), patience); err != nil {
			t.Error(err)
		}
		time.Sleep(15 * time.Minute)
		if n := w.used(ofPool); n != 0 {
			t.Errorf("%d hosts count when none is left", n)
		}
	})
}

// slowRequests is a store that takes its time to write a request, so that many see
// the same room before one has taken it.
type slowRequests struct{ *store.Store }

func (s slowRequests) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Store.UpdateRequest(ctx, q)
}

// However many launch at once, on whatever replica and a warm pool among them, there
// are never more machines than may be.
func TestAMaximumUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warm := func(o *fleet.Options) {
			atMost(5)(o)
			o.Store = slowRequests{o.Store.(*store.Store)}
			p := o.Pools["default"]
			p.Warm = &fleet.WarmPool{
				Policy: policy.WarmPolicy{MinimumIdle: 2},
				Spec:   lifecycle.Spec{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"}},
			}
			o.Pools["default"] = p
		}
		w := newWorld(t, warm)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer time.Sleep(time.Minute) // a sweep may be about to write
		defer cancel()
		go w.agents(ctx)
		go watched(ctx, func() bool { return w.below(5) })
		replicas := []*fleet.Fleet{w.fleet, w.newFleet("b", warm)}
		var all sync.WaitGroup
		for i, f := range replicas {
			go f.Sweep(ctx)
			for n := range 6 {
				all.Go(func() {
					d := demandOf(repository, fmt.Sprint(10*i+n), 1+n%3, 1+n%3, 20*time.Minute)
					p, err := f.NewProvision(d)
					if err == nil {
						err = f.Drive(ctx, p, patience)
					}
					var short *fleet.ShortError
					if err != nil && !errors.As(err, &short) {
						t.Errorf("run %s: %v", d.RunID, err)
					}
					time.Sleep(time.Minute)
					if err := f.Drive(ctx, f.NewRelease(repository, d.RunID, 0, false), patience); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
	})
}

// A crash after any effect, or any lost answer, loses no room of the pool, nor any
// entry of a live host.
func TestACrashWithAMaximum(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return launchAt(t, at, true) })
}

func TestALostAnswerWithAMaximum(t *testing.T) {
	racepass.CoveredBy(t, "TestACrashWithAMaximum")
	strikeEach(t, func(t *testing.T, at int) *fate { return launchAt(t, at, false) })
}

func launchAt(t *testing.T, at int, dies bool) *fate {
	f := &fate{at: at}
	w := newWorld(t, atMost(2))
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	mortal, die := context.WithCancel(ctx)
	defer die()
	if dies {
		f.kill = die
	}
	first := w.newFleet("first", atMost(2), func(o *fleet.Options) {
		o.GitHub, o.Compute = mortalGitHub{w.github, f}, mortalCompute{w.compute, f}
		o.Store, o.Guards = mortalStore{w.store, f}, mortalStore{w.store, f}
	})
	go w.agents(ctx)
	go func() {
		if dies {
			first.Sweep(mortal)
		}
		w.fleet.Sweep(ctx)
	}()
	go watched(ctx, func() bool { return w.below(2) })
	p, err := first.NewProvision(demandOf(repository, "1", 2, 1, 2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Drive(mortal, p, patience) // whose outcome is another test's
	_ = first.Drive(mortal, first.NewRelease(repository, "1", 0, true), patience)
	if dies {
		time.Sleep(3 * time.Minute)
		w.release(ctx, "1", false)
		if f.struck() == "" {
			time.Sleep(10 * time.Minute) // the first sweeps until its hosts are gone
			die()
		}
	}
	w.mustProvision(ctx, demandOf("acme/lib", "2", 2, 2, 30*time.Minute)) // cannot use those of the first
	return f
}

// unanswered is a cloud whose answers to launches are lost, and which lists nothing of
// what they made yet.
type unanswered struct{ fleet.Compute }

func (c unanswered) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if _, err := c.Compute.Launch(ctx, order); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("no answer: %w", lifecycle.ErrUnavailable)
}

func (c unanswered) Launched(context.Context, lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return nil, nil
}

// A request whose time is over before it learns what its launch has made leaves the
// launch its room.
func TestTheRoomOfALaunchWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, atMost(1), func(o *fleet.Options) { o.Compute = unanswered{o.Compute} })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		d := demandOf(repository, "1", 1, 1, 20*time.Second)
		if _, err := w.provision(ctx, d); err == nil {
			t.Fatal("the run has got a host")
		}
		time.Sleep(20 * time.Second)
		if _, err := w.provision(ctx, d); err == nil {
			t.Fatal("the run has got a host")
		}
		if w.below(1); w.machines() != 1 {
			t.Errorf("%d machines, want the one that was launched", w.machines())
		}
	})
}

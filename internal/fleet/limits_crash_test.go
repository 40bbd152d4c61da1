package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

var crashLimits = policy.Limits{HostsPerRepository: 3, HostsPerOwner: 2}

// A replica that dies after any effect of a run's life takes no room with it, and
// loses none that a host has.
func TestACrashWithLimits(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate {
		f := &fate{at: at}
		live(t, f, true)
		return f
	})
}

// The same for an answer that is lost.
func TestALostAnswerWithLimits(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate {
		f := &fate{at: at}
		live(t, f, false)
		return f
	})
}

// live has a run begin and end on a replica with a fate, and then another take all
// the room there is.
func live(t *testing.T, f *fate, dies bool) {
	w := newWorld(t, limited(crashLimits))
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	mortal, die := context.WithCancel(ctx)
	defer die()
	if dies {
		f.kill = die
	}
	first := w.newFleet("first", limited(crashLimits), func(o *fleet.Options) {
		o.GitHub, o.Compute = mortalGitHub{w.github, f}, mortalCompute{w.compute, f}
		o.Store, o.Guards = mortalStore{w.store, f}, mortalStore{w.store, f}
	})
	go w.agents(ctx)
	go w.fleet.Sweep(ctx)
	go func() {
		for ctx.Err() == nil && w.within(crashLimits) {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	p, err := first.NewProvision(demandOf(repository, "1", 2, 1, 2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Drive(mortal, p, patience); err != nil && !f.isDead() {
		t.Fatal(err)
	}
	if err := first.Drive(mortal, first.NewRelease(repository, "1", 0, true), patience); err != nil && !f.isDead() {
		t.Fatal(err)
	}
	if f.isDead() { // and another caller releases the run
		time.Sleep(3 * time.Minute)
		w.release(ctx, "1", false)
	}
	begun := time.Now()
	next := w.mustProvision(ctx, demandOf(repository, "2", 2, 2, 30*time.Minute))
	if len(next) != 2 {
		t.Errorf("the next run got %d hosts", len(next))
	}
	if time.Since(begun) > time.Minute {
		t.Errorf("the next run waited %s", time.Since(begun))
	}
	w.release(ctx, "2", true)
	for end := time.Now().Add(20 * time.Minute); w.used(ofOwner)+w.used(ofRepository) > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("room is taken still: %d and %d hosts", w.used(ofRepository), w.used(ofOwner))
		}
	}
	if n := len(w.records(lifecycle.StateRunning)); n != 0 {
		t.Errorf("%d hosts run", n)
	}
}

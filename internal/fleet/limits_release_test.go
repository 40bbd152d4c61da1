package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// slowCloud is EC2 on a bad day, for one run: a launch takes long or has no answer, and
// what it has made is listed late.
type slowCloud struct {
	fleet.Compute
	run string
	// launches counts the calls. takes is how long each is under way before its effect.
	launches *atomic.Int32
	takes    time.Duration
	silent   bool // no launch is answered
	// listed is from when on a listing shows what it has made.
	listed time.Time
}

func (c slowCloud) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if order.RunID != c.run {
		return c.Compute.Launch(ctx, order)
	}
	c.launches.Add(1)
	time.Sleep(c.takes)
	machines, err := c.Compute.Launch(ctx, order)
	if c.silent {
		return nil, fmt.Errorf("no answer: %w", lifecycle.ErrUnavailable)
	}
	return machines, err
}

func (c slowCloud) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if order.RunID == c.run && time.Now().Before(c.listed) {
		return nil, nil
	}
	return c.Compute.Launched(ctx, order)
}

// A run that is released while its launch is under way gives the room of hosts that may
// come still back once they have come, and ended, or come no more.
func TestReleaseDuringALaunch(t *testing.T) {
	racepass.CoveredBy(t, "TestLimitsUnderConcurrency")
	l := policy.Limits{HostsPerRepository: 2, HostsPerOwner: 2}
	for name, test := range map[string]struct {
		takes  time.Duration
		silent bool
		blind  time.Duration // how long nothing is listed
		hosts  int           // of both runs that get a record
	}{
		"no answer, and listed late":              {silent: true, blind: 15 * time.Second, hosts: 4},
		"no answer, and never listed":             {silent: true, blind: time.Hour, hosts: 2},
		"the answer comes after the release":      {takes: 15 * time.Second, hosts: 4},
		"the answer comes long after the release": {takes: 3 * time.Minute, hosts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var launches atomic.Int32
				w := newWorld(t, limited(l), func(o *fleet.Options) {
					o.Compute = slowCloud{o.Compute, "1", &launches, test.takes, test.silent, time.Now().Add(test.blind)}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				go w.fleet.Sweep(ctx)
				go func() { _, _ = w.provision(ctx, demandOf(repository, "1", 2, 2, 10*time.Minute)) }() // released below
				time.Sleep(5 * time.Second)
				w.release(ctx, "1", false)
				released, tries := time.Now(), launches.Load()
				go watched(ctx, func() bool { return w.within(l) })
				if n := w.used(ofRepository); n != 2 {
					t.Errorf("%d hosts count while they may come still, want 2", n)
				}
				w.mustProvision(ctx, demandOf(repository, "2", 2, 2, 10*time.Minute))
				if waited := time.Since(released); waited > 2*time.Minute {
					t.Errorf("the next run waited %s", waited)
				}
				time.Sleep(20 * time.Minute)
				if n := launches.Load(); n != tries {
					t.Errorf("%d launches after the release", n-tries)
				}
				if n := len(w.records()); n != test.hosts {
					t.Errorf("%d hosts were recorded, want %d", n, test.hosts)
				}
				if n := w.machines(); n != 2 {
					t.Errorf("%d machines are left, want those of the second run", n)
				}
			})
		})
	}
}

// stillAccounts stand still once, for longer than a release keeps its reservation, and then
// another writer is faster.
type stillAccounts struct {
	fleet.GuardStore
	once   *sync.Once
	writes *atomic.Int32 // since
}

func (s stillAccounts) UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (ledger.Quota, error) {
	lost := false
	s.once.Do(func() {
		time.Sleep(3 * time.Minute)
		lost = true
	})
	if lost {
		return a, lifecycle.ErrConflict
	}
	s.writes.Add(1)
	return s.GuardStore.UpdateQuotaLedger(ctx, a)
}

// A Provision that stood still before it took room takes none for a run that is released.
func TestNoRoomForAReleasedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := policy.Limits{HostsPerRepository: 2}
		w := newWorld(t, limited(l))
		var writes atomic.Int32
		still := w.newFleet("b", limited(l), func(o *fleet.Options) { o.Guards = stillAccounts{o.Guards, new(sync.Once), &writes} })
		p, err := still.NewProvision(demandOf(repository, "1", 2, 2, 10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- still.Drive(t.Context(), p, patience) }()
		time.Sleep(time.Second)
		w.release(t.Context(), "1", false)
		var released *fleet.ReleasedError
		if err := <-over; !errors.As(err, &released) {
			t.Errorf("the end of the request: %v", err)
		}
		if n := writes.Load(); n != 0 {
			t.Errorf("room was taken and given back: %d writes", n)
		}
	})
}

// lateAccounts take long for one write, whose caller does not live to see it.
type lateAccounts struct {
	fleet.GuardStore
	once *sync.Once
	dies context.CancelFunc
}

func (s lateAccounts) UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (stored ledger.Quota, err error) {
	s.once.Do(func() {
		time.Sleep(5 * time.Second)
		stored, err = s.GuardStore.UpdateQuotaLedger(context.WithoutCancel(ctx), a)
		s.dies()
	})
	return stored, err
}

// If a Provision writes after the release of its run, and dies, the next sweep gives back
// what it wrote.
func TestRoomTakenBehindARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := policy.Limits{HostsPerRepository: 2}
		w := newWorld(t, limited(l))
		ctx, dies := context.WithCancel(t.Context())
		late := w.newFleet("b", limited(l), func(o *fleet.Options) { o.Guards = lateAccounts{o.Guards, new(sync.Once), dies} })
		p, err := late.NewProvision(demandOf(repository, "1", 2, 2, 10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- late.Drive(ctx, p, patience) }()
		time.Sleep(time.Second)
		w.release(t.Context(), "1", false)
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("the end of the request: %v", err)
		}
		if n := w.used(ofRepository); n != 2 {
			t.Fatalf("%d hosts count, want the 2 that were written behind the release", n)
		}
		sweeping, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go w.fleet.Sweep(sweeping)
		time.Sleep(2 * time.Minute)
		if n := w.used(ofRepository); n != 0 {
			t.Errorf("%d hosts count for good", n)
		}
	})
}

package fleet_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// slowGitHub deletes registrations at the pace that internal/github keeps.
type slowGitHub struct{ *fakeGitHub }

func (g slowGitHub) DeleteRunner(ctx context.Context, repository string, id int64) error {
	time.Sleep(time.Minute / 70)
	return g.fakeGitHub.DeleteRunner(ctx, repository, id)
}

// dueSweeps notes the longest time between the ends of two due sweeps.
type dueSweeps struct {
	silent
	mu   sync.Mutex
	last time.Time
	gap  time.Duration
}

func (d *dueSweeps) Swept(sweep string, _ time.Duration, _ error) {
	if sweep != "due" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.last.IsZero() {
		d.gap = max(d.gap, time.Since(d.last))
	}
	d.last = time.Now()
}

// TestASlowSweepKeepsNoOther: while a hundred hosts are scaled down, at GitHub's
// pace, the others are looked at as ever; and it comes to its end.
func TestASlowSweepKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := &dueSweeps{}
		w := newWorld(t, scalingDown(policy.ScaleDown{}), func(o *fleet.Options) {
			o.GitHub, o.Observer = slowGitHub{o.GitHub.(*fakeGitHub)}, due
		})
		w.idleHosts(t, repository, "7", 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		time.Sleep(6 * time.Minute)
		due.mu.Lock()
		defer due.mu.Unlock()
		if due.gap == 0 || due.gap > 10*time.Second {
			t.Errorf("no due sweep for %s", due.gap)
		}
		if left := len(w.github.names()); left > 0 {
			t.Errorf("%d registrations are left", left)
		}
	})
}

// TestAnotherReplicaSweepsInTime: whenever a replica stops without a word, another one sweeps within a lease and an interval of its last sweep.
func TestAnotherReplicaSweepsInTime(t *testing.T) {
	const lease, interval = 15 * time.Second, 5 * time.Second
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			w, due := newWorld(t), &dueSweeps{}
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			random := rand.New(rand.NewPCG(seed, 0))
			alive, crash := context.WithCancel(ctx)
			for i, until := range []context.Context{alive, ctx} {
				replica := w.newFleet(string(rune('a'+i)), func(o *fleet.Options) {
					o.Observer, o.Rand = due, rand.New(rand.NewPCG(seed, uint64(i+1)))
					o.Timing.Lease, o.Timing.Due = lease, interval
				})
				go replica.Sweep(until)
				synctest.Wait() // the first one has the lease
			}
			time.Sleep(time.Minute + time.Duration(random.Int64N(int64(lease))))
			crash()
			time.Sleep(time.Minute)
			due.mu.Lock()
			defer due.mu.Unlock()
			if most := lease + interval*11/10; due.gap > most || time.Since(due.last) > interval*11/10 { // the interval has a jitter of a tenth
				t.Errorf("seed %d: no due sweep for %s, want at most %s; the last one was %s ago", seed, due.gap, most, time.Since(due.last))
			}
		})
	}
}

// TestAHolderKeepsItsLease: a replica that renews its lease in time keeps it, however late the others look.
func TestAHolderKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, others := newWorld(t), &dueSweeps{}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		synctest.Wait()
		for i := range 5 {
			replica := w.newFleet(string(rune('b'+i)), func(o *fleet.Options) { o.Observer, o.Rand = others, rand.New(rand.NewPCG(uint64(i), 0)) })
			go replica.Sweep(ctx)
			time.Sleep(time.Second)
		}
		time.Sleep(24 * time.Hour)
		others.mu.Lock()
		defer others.mu.Unlock()
		if !others.last.IsZero() {
			t.Errorf("another replica swept at %s", others.last)
		}
	})
}

// dueAway is a store that does not list due hosts.
type dueAway struct {
	fleet.Store
	tries atomic.Int32
}

func (d *dueAway) DueInstances(context.Context, time.Time, lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	d.tries.Add(1)
	return lifecycle.Page[lifecycle.Record]{}, errDamaged
}

// TestAFailureNowAndThenIsNoOutage: the pause after a failed sweep grows with the failures in a row, and not with those before the last success. The log has
// the same failure once a minute.
func TestAFailureNowAndThenIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &dueAway{}
		logs := &lockedBuffer{}
		w := newWorld(t, func(o *fleet.Options) {
			store.Store, o.Store, o.Timing.Due, o.Log = o.Store, store, 100*time.Millisecond, hclog.New(&hclog.LoggerOptions{Output: logs})
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		time.Sleep(3*time.Minute - time.Second)
		if n := store.tries.Load(); n < 3*500 {
			t.Errorf("%d tries in three minutes, want one for each 100 ms", n)
		}
		if n := strings.Count(logs.String(), "sweep failed; trying again"); n != 3 {
			t.Errorf("the log has %d lines in three minutes, want 3", n)
		}
	})
}

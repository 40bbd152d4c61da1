package outage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// GitHub is down for ten minutes, in three ways. No host is ended because of it,
// no pool is drained, GitHub is left alone, and then the work goes on by itself.
func TestGitHubIsDownForTenMinutes(t *testing.T) {
	inWorld(t, func(ctx context.Context, w *world) {
		t := w.t
		// A host with a job of its run, one that is about to be released, and some
		// in the pool.
		w.must(w.provision(ctx, repository, "1001", 1, time.Minute))
		w.start(1001, "1001", 20*time.Minute)
		w.must(w.provision(ctx, repository, "1002", 1, time.Minute))
		w.must(w.provision(ctx, repository, "1003", 4, time.Minute))
		w.release(ctx, "1003", true)
		// A job pool with a host at work and one in the pool.
		w.start(0, "remuda-small", 15*time.Minute, time.Second)
		w.until("a job of the job pool is over", 2*time.Minute, func() bool { return w.hosts.over.Load() == 1 && w.pooled() == 5 })

		time.Sleep(2 * time.Minute)

		w.start(0, "remuda-small", time.Minute, time.Minute) // more than the pool may have, and their webhooks arrive
		w.wire.set(failing)
		w.deliver(false)
		w.release(ctx, "1002", false)
		began := time.Now()
		w.start(0, "remuda-small", time.Second) // its webhooks do not

		// A run whose token exists already asks for hosts, and waits.
		meanwhile := make(chan error, 1)
		go func() {
			time.Sleep(time.Minute)
			meanwhile <- w.provision(ctx, repository, "1005", 2, 20*time.Minute)
		}()

		for _, phase := range []struct {
			is   mode
			ends time.Duration
			most int // calls
		}{
			{failing, 4 * time.Minute, 75}, {hanging, 7 * time.Minute, 45}, {limiting, 10 * time.Minute, 10},
		} {
			w.wire.set(phase.is)
			for time.Since(began) < phase.ends {
				w.checkRefusal(ctx)
				time.Sleep(30 * time.Second)
			}
			n := w.wire.called(phase.is)
			t.Logf("down by %s: %d calls", phase.is, n)
			if n > phase.most {
				t.Errorf("%d calls while GitHub was down by %s, want at most %d", n, phase.is, phase.most)
			}
		}
		w.wire.checkRests(t, time.Minute)
		if n := w.pooled(); n != 5 {
			t.Errorf("%d hosts are in the pools, want the 5 that were", n)
		}
		for _, r := range w.records(lifecycle.StateTerminated) {
			t.Errorf("ended while GitHub was down: %s", r.Reason)
		}
		if n := len(w.of("1001")); n != 1 {
			t.Errorf("%d hosts serve the run whose job runs, want 1", n)
		}

		w.wire.set(up)
		w.deliver(true)
		w.must(w.provision(ctx, repository, "1004", 1, 2*time.Minute))
		w.must(w.provision(ctx, stranger, "9", 1, 2*time.Minute))
		w.must(<-meanwhile)
		for _, r := range slices.Concat(w.of("1004"), w.of("1005")) {
			if r.Assignment == 1 {
				t.Errorf("%s was launched for run %s, and there were hosts in the pool", r.InstanceID, r.RunID)
			}
		}
		w.until("the released host is clean", 3*time.Minute, func() bool {
			return !slices.ContainsFunc(w.records(lifecycle.StateIdle), lifecycle.Record.Releasing)
		})
		w.until("the jobs that waited are over", 3*time.Minute, func() bool { return w.hosts.over.Load() >= 3 })
		w.until("the job whose webhook was lost is over", 6*time.Minute, func() bool { return w.hosts.over.Load() >= 5 })
		w.until("all jobs are over", 30*time.Minute, func() bool { return w.hosts.over.Load() == 6 })
		for _, run := range []string{"1001", "1004", "1005"} {
			w.release(ctx, run, true)
		}
		w.must(w.fleet.Drive(ctx, w.fleet.NewRelease(stranger, "9", 0, true), time.Minute))
		w.until("no registration is left", 12*time.Minute, func() bool { return len(w.registered()) == 0 })
	})
}

// checkRefusal: a caller that asks for hosts of a repository without a token
// gets the advice to come again, no later than GitHub asks for.
func (w *world) checkRefusal(ctx context.Context) {
	w.t.Helper()
	err := w.provision(ctx, stranger, "9", 1, 0)
	var unavailable *lifecycle.UnavailableError
	if !errors.Is(err, lifecycle.ErrUnavailable) || !errors.As(err, &unavailable) {
		w.t.Fatalf("provision while GitHub is down: %v", err)
	}
	if unavailable.RetryAfter > time.Minute {
		w.t.Errorf("told to come again in %s, and GitHub asked for a minute at most", unavailable.RetryAfter)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

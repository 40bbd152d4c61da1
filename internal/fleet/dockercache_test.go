package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// withDocker gives the default pool a cache that holds docker.
func withDocker(s *sources) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Caches = []cache.Spec{{Name: "images", Holds: cache.HoldsDocker, Size: 1 << 30}}
		p.Policy.DockerCache = "images"
		o.Pools["default"], o.Sources = p, s
	}
}

// TestRunsAndTheCacheOfDocker: a host outlives the runs that may write the cache alone, by GitHub's word.
func TestRunsAndTheCacheOfDocker(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	request := push
	request.Event = "pull_request"
	protected := cache.Branch{Has: true, Protected: true}
	for name, tt := range map[string]struct {
		sources *sources
		ends    bool
	}{
		"a push to a protected branch": {&sources{run: push, branch: protected}, false},
		"a pull request":               {&sources{run: request, branch: protected}, true},
		"another branch":               {&sources{run: push, branch: cache.Branch{Has: true}}, true},
		"GitHub has no such run":       {&sources{runErr: lifecycle.ErrNotFound}, true},
		"GitHub refuses to say":        {&sources{runErr: fmt.Errorf("get a run: %w", lifecycle.ErrRefused)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, withDocker(tt.sources), func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.release(ctx, "1", false)
				time.Sleep(time.Minute)
				r := w.record(host.HostKey)
				if ended := r.State == lifecycle.StateTerminated; ended != tt.ends || ended && r.ReasonCode != lifecycle.ReasonUntrustedRun {
					t.Errorf("the host is %s [%s]: %s", r.Condition(), r.ReasonCode, r.Reason)
				}
			})
		})
	}
}

// TestARunThatGitHubDoesNotJudge: its host ends for no outage of GitHub alone. It serves no run until GitHub has answered, and ends if it does not.
func TestARunThatGitHubDoesNotJudge(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	for name, tt := range map[string]struct {
		event  string
		after  time.Duration // GitHub answers again
		look   time.Duration
		pooled bool
		waits  bool
	}{
		"it may write":           {"push", 10 * time.Minute, 11 * time.Minute, true, false},
		"it may not":             {"pull_request", 10 * time.Minute, 11 * time.Minute, false, false},
		"GitHub is still away":   {"push", time.Hour, 10 * time.Minute, false, true},
		"GitHub does not return": {"push", 3 * time.Hour, 2 * time.Hour, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sources{run: push, branch: cache.Branch{Has: true, Protected: true}, hangs: true}
			s.run.Event = tt.event
			inBubbleOf(t, withDocker(s), func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.release(ctx, "1", false)
				time.AfterFunc(tt.after, s.answer)
				time.Sleep(tt.look)
				r := w.record(host.HostKey)
				switch {
				case r.Pooled() != tt.pooled, r.Releasing() != tt.waits:
					t.Errorf("the host is %s [%s]: %s", r.Condition(), r.ReasonCode, r.Reason)
				case r.State == lifecycle.StateTerminated && r.ReasonCode != lifecycle.ReasonUntrustedRun:
					t.Errorf("the host has ended for %s", r.ReasonCode)
				case r.Unjudged != tt.waits:
					t.Errorf("its record says %t of GitHub not having judged its run", r.Unjudged)
				}
			})
		})
	}
}

// TestARunThatLeavesBeforeTheCacheOfDocker: a host that a run leaves before it was ready is judged by its run too. So no idle hosts end, one after the other, while
// GitHub lets none register.
func TestARunThatLeavesBeforeTheCacheOfDocker(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	protected := cache.Branch{Has: true, Protected: true}
	for name, tt := range map[string]struct {
		event string
		ends  bool
	}{
		"a push to a protected branch": {"push", false},
		"a pull request":               {"pull_request", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sources{run: push, branch: protected}
			inBubbleOf(t, withDocker(s), func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.release(ctx, "1", true)
				s.run.Event = tt.event
				w.set(func() { w.broken["*"] = lifecycle.CauseGitHub })
				go func() { _, _ = w.provision(ctx, demand("2", "a", 1)) }()
				w.until("the host leaves run 2", time.Minute, func() bool { r := w.record(host.HostKey); return r.Assignment > 3 })
				w.set(func() { clear(w.broken) })
				time.Sleep(time.Minute)
				r := w.record(host.HostKey)
				if ended := r.State == lifecycle.StateTerminated; ended != tt.ends || ended && r.ReasonCode != lifecycle.ReasonUntrustedRun {
					t.Errorf("the host is %s [%s]: %s", r.Condition(), r.ReasonCode, r.Reason)
				}
			})
		})
	}
}

// TestDroppedCacheOfDocker: each host that may have it leaves, the one at work after its run.
func TestDroppedCacheOfDocker(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	trusted := &sources{run: push, branch: cache.Branch{Has: true, Protected: true}}
	inBubbleOf(t, withDocker(trusted), func(ctx context.Context, t *testing.T, w *world) {
		go sweepOnceItWaits(ctx, w.fleet)
		serving := w.mustProvision(ctx, demand("1", "a", 1))[0]
		n, err := w.fleet.DropCache(ctx, fleet.DropTarget{Pool: "default", Of: repository, Name: "images"}, "poison", "alice", time.Now())
		if err != nil || n != (hosts.Dropped{Leaving: 1}) {
			t.Fatalf("dropped on %+v, %v", n, err)
		}
		time.Sleep(time.Minute)
		if r := w.record(serving.HostKey); r.State != lifecycle.StateRunning {
			t.Errorf("the host at work is %s", r.Condition())
		}
		w.release(ctx, "1", false)
		time.Sleep(time.Minute)
		if r := w.record(serving.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("after its run the host is %s", r.Condition())
		}
	})
}

// TestARunThatLeavesAStartingHost: no other run gets a host whose machine was started for a run that may not write. Its job may have been root there, and kept
// the host from being heard. Where the cloud had no capacity no job was there.
func TestARunThatLeavesAStartingHost(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	for name, tt := range map[string]struct {
		event string
		short bool
		ends  bool
	}{
		"a push to a protected branch":   {"push", false, false},
		"a pull request":                 {"pull_request", false, true},
		"a pull request and no capacity": {"pull_request", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sources{run: push, branch: cache.Branch{Has: true, Protected: true}}
			synctest.Test(t, func(t *testing.T) {
				w, ctx := newWorld(t, stops(1), withDocker(s)), t.Context()
				r := w.stopOne(ctx)
				s.run.Event = tt.event
				w.compute.SetStartShort(tt.short)
				p, err := w.fleet.NewProvision(demand("next", "q", 1))
				if err != nil {
					t.Fatal(err)
				}
				started := func() bool {
					got := w.record(r.HostKey)
					return got.Starting() && !tt.short || got.Stopped() && got.Assignment > r.Assignment
				}
				for !started() {
					next, err := p.Step(ctx, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(next.Wait)
				}
				w.releaseQuietly(ctx, "next")
				for range 3 {
					time.Sleep(10 * time.Second)
					w.sweepOnce(ctx, w.fleet.NewDueSweep())
				}
				got := w.record(r.HostKey)
				if ended := got.State == lifecycle.StateTerminated; ended != tt.ends || !ended && (!got.Stopped() || got.Retiring) {
					t.Errorf("the host is %s, retiring %t: %s", got.Condition(), got.Retiring, got.Reason)
				}
			})
		})
	}
}

// TestARefreshSaysWhatGitHubJudged: of a host that waited for GitHub to judge its run it says what becomes of it.
func TestARefreshSaysWhatGitHubJudged(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	for event, want := range map[string]lifecycle.Action{"push": lifecycle.ActionPool, "pull_request": lifecycle.ActionTerminate} {
		t.Run(event, func(t *testing.T) {
			s := &sources{run: push, branch: cache.Branch{Has: true, Protected: true}, hangs: true}
			s.run.Event = event
			inBubbleOf(t, withDocker(s), func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", 1))
				w.release(ctx, "1", false)
				s.answer()
				time.Sleep(time.Minute)
				refresh := w.fleet.NewRefresh(false)
				w.sweepOnce(ctx, refresh)
				var said []lifecycle.Action
				for _, d := range refresh.Decisions() {
					if d.Sweep == "refresh" {
						said = append(said, d.Action)
					}
				}
				if diff := cmp.Diff([]lifecycle.Action{lifecycle.ActionKeep, want}, said); diff != "" {
					t.Errorf("decisions (-want +got):\n%s", diff)
				}
			})
		})
	}
}

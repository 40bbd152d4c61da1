package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// dropGo drops the cache of acme/app in the default pool.
func (w *world) dropGo(ctx context.Context) hosts.Dropped {
	w.t.Helper()
	n, err := w.fleet.DropCache(ctx, fleet.DropTarget{Pool: "default", Of: "Acme/App", Name: "go"}, "poison", "alice", time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestDroppedCaches: each host that may have the cache is to delete it, no other is touched, and what a run leaves in it is not kept. The history says
// who dropped it. A second call finds the same hosts.
func TestDroppedCaches(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	trusted := &sources{run: push, branch: cache.Branch{Has: true, Protected: true}}
	inBubbleOf(t, func(o *fleet.Options) { ownersCaches(o); o.Sources = trusted }, func(ctx context.Context, t *testing.T, w *world) {
		go sweepOnceItWaits(ctx, w.fleet)
		serving := w.mustProvision(ctx, demand("1", "a", 1))[0]
		has, hasNot := w.pooled(ctx, "acme", false), w.pooled(ctx, "acme", false)
		w.give(ctx, has, 100, repository)
		w.give(ctx, hasNot, 100, "acme/other")
		if n := w.dropGo(ctx); n != (hosts.Dropped{Marked: 2}) {
			t.Errorf("dropped on %+v", n)
		}
		if n := w.dropGo(ctx); n != (hosts.Dropped{Marked: 2}) {
			t.Errorf("once more: %+v", n)
		}
		key := keyOf(repository)
		for id, want := range map[string][2][]string{serving.HostKey: {nil, {key}}, has: {{key}, nil}, hasNot: {}} {
			if r := w.record(id); !slices.Equal(r.DropCaches.Keys(), want[0]) || !slices.Equal(r.ThrowCaches, want[1]) || r.Retiring {
				t.Errorf("%s drops %s and throws %v", id, r.DropCaches, r.ThrowCaches)
			}
		}
		w.set(func() { w.mute = true })
		freed := w.release(ctx, "1", false).Instances()
		if r := w.record(freed[0].HostKey); len(r.KeepCaches) != 0 || !strings.Contains(r.Reason, "an operator dropped it") {
			t.Errorf("after the release it keeps %v: %s", r.KeepCaches, r.Reason)
		}
		w.set(func() { w.mute = false })
		time.Sleep(time.Minute)
		if r := w.record(serving.HostKey); !r.Pooled() || len(r.DropCaches)+len(r.ThrowCaches) != 0 {
			t.Errorf("a minute later it is %s and drops %s", r.Condition(), r.DropCaches)
		}
		// The next run does not choose the host by a cache that it will not see.
		if got := w.mustProvision(ctx, demand("2", "b", 1))[0]; strings.Contains(got.Arrival.Chosen, "100 MiB") {
			t.Errorf("it was chosen since %s", got.Arrival.Chosen)
		}
		told := 0
		page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			if e.Action == lifecycle.ActionDropCache && e.Reason == "cache go of Acme/App was dropped by alice: poison, on 2 hosts" && e.Pool == "default" && e.Repository == repository {
				told++
			}
		}
		if told != 2 {
			t.Errorf("the history has it %d times", told)
		}
	})
}

// TestDroppedCacheOfAHotHost: a host whose runner listens has given its next job the cache. It leaves.
func TestDroppedCacheOfAHotHost(t *testing.T) {
	inBubbleOf(t, withCaches(&sources{}), func(ctx context.Context, t *testing.T, w *world) {
		hot := w.pooled(ctx, repository, false)
		w.give(ctx, hot, 100, repository)
		r := w.record(hot)
		r.Standby = &lifecycle.Standby{}
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			t.Fatal(err)
		}
		if n := w.dropGo(ctx); n != (hosts.Dropped{Leaving: 1}) {
			t.Errorf("dropped on %+v", n)
		}
		if r := w.record(hot); !r.Retiring || r.RetiringReason != "cache go of Acme/App was dropped by alice: poison" {
			t.Errorf("retiring %v: %s", r.Retiring, r.RetiringReason)
		}
	})
}

// TestDropUnknownCaches: what is not configured is not found, and the name must be of the cache's scope. Nothing is written.
func TestDropUnknownCaches(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) {
		ownersCaches(o)
		p := o.Pools["default"]
		p.Caches = append(p.Caches, cache.Spec{Name: "tools", Paths: []string{"~/tools"}, Size: 1 << 30, Scope: cache.ScopeOwner})
		o.Pools["default"] = p
	}, func(ctx context.Context, t *testing.T, w *world) {
		for want, target := range map[string]fleet.DropTarget{
			`there is no pool "large"`:                                                 {Pool: "large", Of: repository, Name: "go"},
			`pool default has no cache "cargo"`:                                        {Pool: "default", Of: repository, Name: "cargo"},
			"repository: cache tools of pool default is an owner's: write acme":        {Pool: "default", Of: repository, Name: "tools"},
			"repository: cache go of pool default is a repository's: write OWNER/NAME": {Pool: "default", Of: "acme", Name: "go"},
		} {
			_, err := w.fleet.DropCache(ctx, target, "", "alice", time.Now())
			var invalid *fleet.InvalidError
			if err == nil || err.Error() != want || !errors.Is(err, lifecycle.ErrNotFound) && !errors.As(err, &invalid) {
				t.Errorf("%+v: %v, want %s", target, err, want)
			}
		}
		if n, err := w.fleet.DropCache(ctx, fleet.DropTarget{Pool: "default", Of: "acme", Name: "tools"}, "", "alice", time.Now()); err != nil || n != (hosts.Dropped{}) {
			t.Errorf("that of an owner: %+v, %v", n, err)
		}
	})
}

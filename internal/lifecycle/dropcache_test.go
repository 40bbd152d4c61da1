package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

var (
	ofRepository = cache.Spec{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}
	ofOwner      = cache.Spec{Name: "tools", Paths: []string{"~/tools"}, Size: 1 << 30, Scope: cache.ScopeOwner}
)

// heldOf is the list of a host that has a cache of some repositories or owners.
func heldOf(spec cache.Spec, of ...string) cache.List {
	var held []cache.Held
	for _, name := range of {
		held = append(held, cache.Held{Key: spec.Key(name), Bytes: 1, CommittedAt: time.Unix(1, 0)})
	}
	return cache.ListOf(held...)
}

func TestMayHave(t *testing.T) {
	pooled := lifecycle.Record{State: lifecycle.StateIdle, PooledAt: time.Unix(1, 0), TrustKey: "acme/app"}
	running := lifecycle.Record{State: lifecycle.StateRunning, TrustKey: "acme/app"}
	ofAll := lifecycle.Record{State: lifecycle.StateRunning, TrustKey: "acme"}
	with := func(r lifecycle.Record, has cache.List) lifecycle.Record { r.Caches = has; return r }
	for name, tt := range map[string]struct {
		r    lifecycle.Record
		spec cache.Spec
		of   string
		want bool
	}{
		"an idle host that has it":                   {with(pooled, heldOf(ofRepository, "acme/app")), ofRepository, "Acme/App", true},
		"an idle host that has it not":               {with(pooled, heldOf(ofRepository, "acme/lib")), ofRepository, "acme/app", false},
		"a host at work for it":                      {running, ofRepository, "acme/app", true},
		"a host at work for it, in another case":     {running, ofRepository, "Acme/App", true},
		"a host at work for another repository":      {running, ofRepository, "acme/lib", false},
		"a host at work for another of the owner":    {running, ofOwner, "acme", true},
		"a host at work for another owner":           {running, ofOwner, "umbrella", false},
		"a host at work for all of an owner":         {ofAll, ofRepository, "acme/app", true},
		"a host that ended":                          {lifecycle.Record{State: lifecycle.StateTerminated, TrustKey: "acme/app"}, ofRepository, "acme/app", false},
		"a host whose name begins as the repository": {lifecycle.Record{State: lifecycle.StateRunning, TrustKey: "acme/app2"}, ofRepository, "acme/app", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.r.MayHave(tt.spec, tt.of); got != tt.want {
				t.Errorf("it may have it: %v", got)
			}
		})
	}
}

// TestDropCache: a host deletes what it has of the cache, and what the present run leaves there is not kept, however the clean-up meets the order. What a
// later run commits stays.
func TestDropCache(t *testing.T) {
	key, other := ofRepository.Key("acme/app"), cache.Spec{Name: "npm"}.Key("acme/app")
	had := heldOf(ofRepository, "acme/app")
	later := cache.ListOf(cache.Held{Key: key, Bytes: 1, CommittedAt: time.Unix(30, 0)})
	pool := func(r lifecycle.Record, has cache.List) lifecycle.Record {
		n, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionPool, Caches: has}, time.Unix(60, 0), lifecycle.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	releasing := lifecycle.Record{State: lifecycle.StateIdle, Assignment: 3, ReleasedAt: time.Unix(1, 0), TrustKey: "acme/app", Uses: 1, KeepCaches: []string{"go", "npm"}, Caches: had}
	marked, ok := releasing.DropCache(ofRepository, "acme/app")
	if !ok || marked.DropCaches != had || !slices.Equal(marked.ThrowCaches, []string{key}) || !slices.Equal(marked.KeepCaches, []string{"npm"}) {
		t.Fatalf("%v: it drops %s, throws %v and keeps %v", ok, marked.DropCaches, marked.ThrowCaches, marked.KeepCaches)
	}
	if releasing.DropCaches != "" || len(releasing.KeepCaches) != 2 {
		t.Error("the record that it was made of has changed")
	}
	if again, ok := marked.DropCache(ofRepository, "acme/app"); !ok || again.DropCaches != had || len(again.ThrowCaches) != 1 {
		t.Errorf("once more: %v, it drops %s and throws %v", ok, again.DropCaches, again.ThrowCaches)
	}
	idle := pool(releasing, had)
	waiting, _ := idle.DropCache(ofRepository, "acme/app")
	if waiting.DropCaches != had || len(waiting.ThrowCaches) != 0 {
		t.Errorf("an idle host drops %s and throws %v", waiting.DropCaches, waiting.ThrowCaches)
	}
	waiting.PooledAt, waiting.ReleasedAt = time.Time{}, time.Unix(1, 0) // after its next run
	for name, c := range map[string]struct {
		r         lifecycle.Record
		has, want cache.List
	}{
		"it was not deleted yet":                   {marked, had, had},
		"the clean-up had begun":                   {marked, later, later},
		"it is gone":                               {marked, cache.ListOf(cache.Held{Key: other, Bytes: 1, CommittedAt: time.Unix(1, 0)}), ""},
		"the next run had no part in it":           {waiting, had, had},
		"the next run deleted it and left its own": {waiting, later, ""},
		"the next run deleted it":                  {waiting, "", ""},
	} {
		if got := pool(c.r, c.has); got.DropCaches != c.want || got.ThrowCaches != nil {
			t.Errorf("%s: it drops %q and throws %v, want %q", name, got.DropCaches, got.ThrowCaches, c.want)
		}
	}
}

// TestDropCacheCannot: a host that listens already, and one with too many marks, cannot.
func TestDropCacheCannot(t *testing.T) {
	hot := lifecycle.Record{State: lifecycle.StateIdle, PooledAt: time.Unix(1, 0), Standby: &lifecycle.Standby{}, TrustKey: "acme/app"}
	if _, ok := hot.DropCache(ofRepository, "acme/app"); ok {
		t.Error("a host that listens drops a cache that its jobs may see")
	}
	hot.TrustKey = "acme" // such a host has given the caches of the owner alone
	if _, ok := hot.DropCache(ofRepository, "acme/app"); !ok {
		t.Error("a host that listens for an owner cannot drop the cache of a repository")
	}
	r := lifecycle.Record{State: lifecycle.StateRunning}
	for i := range lifecycle.MaxThrown {
		var ok bool
		if r, ok = r.DropCache(ofRepository, fmt.Sprintf("acme/app%d", i)); !ok {
			t.Fatalf("the mark %d is refused", i)
		}
	}
	if _, ok := r.DropCache(ofRepository, "acme/one-more"); ok {
		t.Error("there is no bound")
	}
	if _, ok := r.DropCache(ofRepository, "acme/app0"); !ok {
		t.Error("a mark that is there is refused")
	}
}

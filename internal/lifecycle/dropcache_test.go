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
		"a host at work for another repository":      {running, ofRepository, "acme/lib", false},
		"a host at work for another of the owner":    {running, ofOwner, "acme", true},
		"a host at work for another owner":           {running, ofOwner, "umbrella", false},
		"a host at work for all of an owner":         {ofAll, ofRepository, "acme/app", true},
		"a host that ended":                          {lifecycle.Record{State: lifecycle.StateTerminated, TrustKey: "acme/app"}, ofRepository, "acme/app", false},
		"an idle host that is to drop it already":    {lifecycle.Record{State: lifecycle.StateIdle, PooledAt: time.Unix(1, 0), DropCaches: []string{ofRepository.Key("acme/app")}}, ofRepository, "acme/app", true},
		"a host whose name begins as the repository": {lifecycle.Record{State: lifecycle.StateRunning, TrustKey: "acme/app2"}, ofRepository, "acme/app", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.r.MayHave(tt.spec, tt.of); got != tt.want {
				t.Errorf("it may have it: %v", got)
			}
		})
	}
}

// TestDropCache: a mark goes only when the host has been pooled without the cache, and until then nothing of it is kept.
func TestDropCache(t *testing.T) {
	key, other := ofRepository.Key("acme/app"), cache.Spec{Name: "npm"}.Key("acme/app")
	r := lifecycle.Record{State: lifecycle.StateIdle, Assignment: 3, ReleasedAt: time.Unix(1, 0), TrustKey: "acme/app", Uses: 1, KeepCaches: []string{"go", "npm"}}
	marked, ok := r.DropCache(ofRepository, "acme/app")
	if !ok || !slices.Equal(marked.DropCaches, []string{key}) || !slices.Equal(marked.KeepCaches, []string{"npm"}) {
		t.Fatalf("%v: it drops %v and keeps %v", ok, marked.DropCaches, marked.KeepCaches)
	}
	if len(r.DropCaches) != 0 || len(r.KeepCaches) != 2 {
		t.Error("the record that it was made of has changed")
	}
	if again, ok := marked.DropCache(ofRepository, "acme/app"); !ok || len(again.DropCaches) != 1 {
		t.Errorf("once more: %v, it drops %v", ok, again.DropCaches)
	}
	pool := func(r lifecycle.Record, has cache.List) lifecycle.Record {
		n, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionPool, Caches: has}, time.Unix(60, 0), lifecycle.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if still := pool(marked, heldOf(ofRepository, "acme/app")); !slices.Equal(still.DropCaches, []string{key}) {
		t.Errorf("pooled with the cache it drops %v", still.DropCaches)
	}
	if done := pool(marked, cache.ListOf(cache.Held{Key: other, Bytes: 1, CommittedAt: time.Unix(1, 0)})); len(done.DropCaches) != 0 {
		t.Errorf("pooled without it, it drops %v", done.DropCaches)
	}
}

// TestDropCacheCannot: a host that listens already, and one with too many marks, cannot.
func TestDropCacheCannot(t *testing.T) {
	hot := lifecycle.Record{State: lifecycle.StateIdle, PooledAt: time.Unix(1, 0), Standby: &lifecycle.Standby{}}
	if _, ok := hot.DropCache(ofRepository, "acme/app"); ok {
		t.Error("a host that listens drops a cache that its jobs may see")
	}
	r := lifecycle.Record{State: lifecycle.StateRunning}
	for i := range lifecycle.MaxDrops {
		var ok bool
		if r, ok = r.DropCache(ofRepository, fmt.Sprintf("acme/app%d", i)); !ok {
			t.Fatalf("the mark %d is refused", i)
		}
	}
	if !slices.IsSorted(r.DropCaches) {
		t.Errorf("out of order: %v", r.DropCaches)
	}
	if _, ok := r.DropCache(ofRepository, "acme/one-more"); ok {
		t.Error("there is no bound")
	}
	if _, ok := r.DropCache(ofRepository, "acme/app0"); !ok {
		t.Error("a mark that is there is refused")
	}
}

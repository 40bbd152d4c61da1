package policy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	goKey    = "00000000000000aa" // of acme/app
	npmKey   = "00000000000000bb" // of acme/app
	otherKey = "00000000000000cc" // of another repository
)

func wantApp() policy.Want {
	return policy.Want{Caches: []string{goKey, npmKey}, Listening: []string{goKey, npmKey}, Repository: "acme/app", RequestID: "q1"}
}

// cachedHost is an idle host, not registered, that served another repository last.
func cachedHost(key string, change func(*lifecycle.Record), held ...cache.Held) lifecycle.Record {
	r := lifecycle.Record{HostKey: key, InstanceID: key, State: lifecycle.StateIdle, PooledAt: monday, Repository: "acme/other", TrustKey: "acme", Caches: cache.ListOf(held...)}
	if change != nil {
		change(&r)
	}
	return r
}

func held(key string, mib int64) cache.Held {
	return cache.Held{Key: key, Bytes: mib << 20, CommittedAt: monday}
}

func servedApp(r *lifecycle.Record) { r.Repository = "acme/app" }
func dropsGo(r *lifecycle.Record)   { r.DropCaches = cache.ListOf(held(goKey, 0)) }
func resting(r *lifecycle.Record)   { r.RestingAt = monday.Add(time.Minute) }
func listens(r *lifecycle.Record)   { r.Standby = &lifecycle.Standby{} }

// TestAffinity: of two idle hosts the better one comes first, in either order, and its reason says why.
func TestAffinity(t *testing.T) {
	for name, tt := range map[string]struct {
		better, worse lifecycle.Record
		want          func(*policy.Want)
		reason        string
	}{
		"both caches before one": {cachedHost("b", nil, held(goKey, 100), held(npmKey, 10)), cachedHost("a", nil, held(goKey, 100)), nil, "it had 2 of the run's 2 caches, 110 MiB"},
		"one before none":        {cachedHost("b", nil, held(npmKey, 1)), cachedHost("a", servedApp), nil, "it had 1 of the run's 2 caches, 1 MiB"},
		"the larger one":         {cachedHost("b", nil, held(goKey, 3000)), cachedHost("a", nil, held(npmKey, 300)), nil, "it had 1 of the run's 2 caches, 2.9 GiB"},
		"the run has one cache": {cachedHost("b", nil, held(goKey, 3000)), cachedHost("a", nil), func(w *policy.Want) { w.Caches = []string{goKey} },
			"it had the run's cache, 2.9 GiB"},
		"the run has one cache, and no host has it": {cachedHost("b", nil), cachedHost("a", nil, held(otherKey, 5)), func(w *policy.Want) { w.Caches = []string{goKey} },
			"no idle host had a cache of the run"},
		"the repository before any":              {cachedHost("b", servedApp), cachedHost("a", nil), nil, "no idle host had a cache of the run, and this one served its repository last"},
		"the cache of another is spared":         {cachedHost("b", nil), cachedHost("a", nil, held(otherKey, 5000)), nil, "no idle host had a cache of the run"},
		"the smaller cache of another":           {cachedHost("b", nil, held(otherKey, 10)), cachedHost("a", nil, held(otherKey, 5000)), nil, "no idle host had a cache of the run"},
		"a large cache is worth the wait":        {cachedHost("b", resting, held(goKey, 1000)), cachedHost("a", listens), nil, "it had 1 of the run's 2 caches, 1000 MiB"},
		"a small one is not":                     {cachedHost("b", listens), cachedHost("a", resting, held(goKey, 40)), nil, "it had none of the run's caches; one with 40 MiB of them would have begun 7s later"},
		"less, but at once":                      {cachedHost("b", listens, held(npmKey, 16)), cachedHost("a", resting, held(goKey, 48)), nil, "it had 1 of the run's 2 caches, 16 MiB; one with 48 MiB of them would have begun 7s later"},
		"a hot host that gave its run another's": {cachedHost("b", nil, held(goKey, 100)), cachedHost("a", listens, held(goKey, 100)), func(w *policy.Want) { w.Listening = nil }, "it had 1 of the run's 2 caches, 100 MiB"},
		"less by a second's part":                {cachedHost("b", servedApp, held(goKey, 25)), cachedHost("a", nil, held(goKey, 31)), nil, "it had 1 of the run's 2 caches, 25 MiB"},
		"hot before warm":                        {cachedHost("b", listens), cachedHost("a", servedApp), nil, "no idle host had a cache of the run"},
		"one that is dropped counts for nothing": {cachedHost("b", nil, held(npmKey, 10)), cachedHost("a", dropsGo, held(goKey, 500)), nil, "it had 1 of the run's 2 caches, 10 MiB"},
		"a cache behind one that is dropped": {cachedHost("b", dropsGo, held(goKey, 500), held(npmKey, 20)), cachedHost("a", nil, held(npmKey, 10)),
			func(w *policy.Want) { w.Caches = []string{goKey, npmKey} }, "it had 1 of the run's 2 caches, 20 MiB"},
		"a run without caches":             {cachedHost("b", nil), cachedHost("a", nil, held(goKey, 500)), func(w *policy.Want) { w.Caches = nil }, "no cache is for such a run"},
		"a size beyond all bounds":         {cachedHost("b", nil, held(goKey, 1<<40)), cachedHost("a", nil, held(goKey, 5)), nil, "it had 1 of the run's 2 caches, 16384.0 GiB"},
		"others of a size beyond all ones": {cachedHost("b", nil, held(otherKey, 5)), cachedHost("a", nil, held(otherKey, 1<<42), held("00000000000000dd", 1<<42)), nil, "no idle host had a cache of the run"},
	} {
		t.Run(name, func(t *testing.T) {
			w := wantApp()
			if tt.want != nil {
				tt.want(&w)
			}
			for _, idle := range [][]lifecycle.Record{{tt.better, tt.worse}, {tt.worse, tt.better}} {
				got := policy.Affinity(w, idle)
				if got[0].Host.HostKey != tt.better.HostKey {
					t.Errorf("first comes %s, since %s", got[0].Host.HostKey, got[0].Reason)
				}
				if got[0].Reason.String() != tt.reason {
					t.Errorf("since %q, want %q", got[0].Reason, tt.reason)
				}
			}
		})
	}
}

// TestAffinitySpreads: of hosts that are the same, requests take different ones first, and every replica orders them in the same way.
func TestAffinitySpreads(t *testing.T) {
	var idle []lifecycle.Record
	for i := range 20 {
		idle = append(idle, cachedHost(string(rune('a'+i)), nil, held(goKey, 100)))
	}
	first := map[string]bool{}
	for i := range 20 {
		w := wantApp()
		w.RequestID = "q" + string(rune('a'+i))
		got := policy.Affinity(w, idle)
		first[got[0].Host.HostKey] = true
		want := choices(got)
		slices.Reverse(idle)
		if diff := cmp.Diff(want, choices(policy.Affinity(w, idle))); diff != "" {
			t.Fatalf("another order of the listing gives other choices:\n%s", diff)
		}
	}
	if len(first) < 10 {
		t.Errorf("20 requests begin with %d hosts of 20", len(first))
	}
}

// choices are the hosts in their order, each with its reason.
func choices(ranked []policy.Ranked) []string {
	var list []string
	for _, r := range ranked {
		list = append(list, r.Host.HostKey+" since "+r.Reason.String())
	}
	return list
}

// TestAffinityKeepsAll: whatever hosts say of themselves, each is there once, no host is better than the one before it, and no reason has what
// a reader of the log may not know or a line cannot hold.
func TestAffinityKeepsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var idle []lifecycle.Record
		for i := range rng.IntN(12) {
			var has []cache.Held
			for _, key := range []string{goKey, npmKey, otherKey} {
				if rng.IntN(2) == 0 {
					has = append(has, cache.Held{Key: key, Bytes: rng.Int64() >> rng.IntN(63), CommittedAt: monday})
				}
			}
			changes := []func(*lifecycle.Record){nil, resting, listens, servedApp}
			idle = append(idle, cachedHost(string(rune('a'+i)), changes[rng.IntN(len(changes))], has...))
		}
		got := policy.Affinity(wantApp(), idle)
		var keys []string
		for _, s := range got {
			keys = append(keys, s.Host.HostKey)
			reason := s.Reason.String()
			if len(reason) > 150 || strings.Contains(reason, "acme") || strings.ContainsAny(reason, "\n\r") {
				t.Fatalf("a reason is %q", reason)
			}
		}
		slices.Sort(keys)
		if len(slices.Compact(slices.Clone(keys))) != len(idle) {
			t.Fatalf("%d hosts in, %v out", len(idle), keys)
		}
	}
}

// TestTheMostThatAnyHostHad: the reason speaks of the host with the most, wherever in the order that is, and of the soonest of those.
func TestTheMostThatAnyHostHad(t *testing.T) {
	const later = "it had none of the run's caches; one with 40 MiB of them would have begun 7s later"
	for name, tt := range map[string]struct {
		idle []lifecycle.Record
		want string
	}{
		"in the middle": {[]lifecycle.Record{cachedHost("a", listens), cachedHost("b", resting, held(goKey, 40)), cachedHost("c", resting)}, later},
		"the last":      {[]lifecycle.Record{cachedHost("a", listens), cachedHost("b", resting, held(goKey, 40))}, later},
		"two have it": {[]lifecycle.Record{cachedHost("a", listens), cachedHost("b", nil, held(goKey, 1)), cachedHost("c", resting, held(goKey, 1))},
			"it had none of the run's caches; one with 1 MiB of them would have begun 5s later"},
	} {
		if got := policy.Affinity(wantApp(), tt.idle)[0].Reason.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

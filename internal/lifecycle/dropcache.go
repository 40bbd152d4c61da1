package lifecycle

import (
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// MaxDrops is how many caches of a host can wait to be dropped.
const MaxDrops = 2 * cache.MaxHeld

// MayHave reports whether the host may have a cache of a repository or an owner, now or when its present run is over.
func (r Record) MayHave(spec cache.Spec, of string) bool {
	of = strings.ToLower(of)
	if _, has := r.Caches.Has(spec.Key(of)); has || slices.Contains(r.DropCaches, spec.Key(of)) {
		return true
	}
	if r.Pooled() || r.State == StateTerminated || Owner(r.TrustKey) != Owner(of) {
		return false
	}
	return r.TrustKey == of || !strings.Contains(r.TrustKey, "/") || spec.ScopeOf() == cache.ScopeOwner
}

// DropCache has the host delete a cache before its next run, and keep nothing that its present one leaves there. It returns the record with the mark, and
// false if the host cannot: one that listens already has given its next run the cache, and one with MaxDrops marks has no room.
func (r Record) DropCache(spec cache.Spec, of string) (Record, bool) {
	key := spec.Key(of)
	if r.Pooled() && r.Standby != nil || !slices.Contains(r.DropCaches, key) && len(r.DropCaches) >= MaxDrops {
		return r, false
	}
	r.KeepCaches = slices.DeleteFunc(slices.Clone(r.KeepCaches), func(name string) bool { return name == spec.Name })
	if !slices.Contains(r.DropCaches, key) {
		r.DropCaches = append(slices.Clone(r.DropCaches), key)
		slices.Sort(r.DropCaches)
	}
	return r, true
}

// stillToDrop are the caches that wait to be dropped and that the host still has. One that it has no more was deleted before its last run, or was
// never committed.
func (r Record) stillToDrop(has cache.List) (keys []string) {
	for _, key := range r.DropCaches {
		if _, is := has.Has(key); is {
			keys = append(keys, key)
		}
	}
	return keys
}

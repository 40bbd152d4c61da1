package lifecycle

import (
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// MaxThrown is how many caches of one run an operator can drop.
const MaxThrown = 2 * cache.MaxHeld

// MayHave reports whether the host may have a cache of a repository or an owner, now or when its present run is over.
func (r Record) MayHave(spec cache.Spec, of string) bool {
	of = strings.ToLower(of)
	if _, has := r.Caches.Has(spec.Key(of)); has {
		return true
	}
	if r.Pooled() || r.State == StateTerminated || Owner(r.TrustKey) != Owner(of) {
		return false
	}
	return r.TrustKey == of || !strings.Contains(r.TrustKey, "/") || spec.ScopeOf() == cache.ScopeOwner
}

// DropCache has the host delete what it has of a cache before its next run, and keep nothing that its present one leaves there. It returns the record
// with the marks, and false if the host cannot: one that listens already has given its next run the cache, and one with MaxThrown marks has no room. What
// was in a cache of docker may have been root, so deleting it is not enough.
func (r Record) DropCache(spec cache.Spec, of string) (Record, bool) {
	key := spec.Key(of)
	thrown := slices.Contains(r.ThrowCaches, key)
	gave := r.Pooled() && r.Standby != nil && spec.Key(r.TrustKey) == key
	if gave || spec.Holds == cache.HoldsDocker || !thrown && len(r.ThrowCaches) >= MaxThrown {
		return r, false
	}
	if !thrown && !r.Pooled() {
		r.ThrowCaches = append(slices.Clone(r.ThrowCaches), key)
	}
	r.KeepCaches = slices.DeleteFunc(slices.Clone(r.KeepCaches), func(name string) bool { return name == spec.Name })
	if held, has := r.Caches.Has(key); has {
		r.DropCaches = cache.ListOf(append(r.DropCaches.Held(), held)...)
	}
	return r, true
}

// stillToDrop is what a host that becomes clean has of the caches that it is to delete: what it had of them then, and what the run that has ended left in
// spite of the order, since its clean-up had begun. What another run has committed since is sound.
func (r Record) stillToDrop(has cache.List) cache.List {
	var held []cache.Held
	for _, h := range has.Held() {
		if was, marked := r.DropCaches.Has(h.Key); marked && was.CommittedAt.Equal(h.CommittedAt) || slices.Contains(r.ThrowCaches, h.Key) {
			held = append(held, h)
		}
	}
	return cache.ListOf(held...)
}

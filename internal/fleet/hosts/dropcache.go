package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// DropTarget names a cache of a pool: that of a repository ("owner/name"), or of an owner if the cache is an owner's.
type DropTarget struct {
	Pool, Of, Name string
}

// Dropped counts the hosts of a dropped cache.
type Dropped struct {
	// Marked are those that delete it before their next run, Leaving those that have given it to their next run already, and leave instead.
	Marked, Leaving int
}

// DropCache has all hosts of a pool delete a cache before their next run, and keep nothing that their present run leaves in it. A run that has a host
// now goes on with its view. by is who asked for it, and is shown to people. Each host is one conditional write, so a call that was cut short is
// repeated. A pool or cache that is not configured is lifecycle.ErrNotFound; a name without a cache, such as an owner for a repository's, is an *InvalidError.
func (hs *Hosts) DropCache(ctx context.Context, t DropTarget, reason, by string, now time.Time) (n Dropped, err error) {
	spec, err := hs.cacheOf(t)
	if err != nil {
		return n, err
	}
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	why := lifecycle.Because(lifecycle.ReasonCacheDropped, "%s", reasoned(fmt.Sprintf("cache %s of %s was dropped by %s", t.Name, t.Of, by), line.First(reason)))
	err = hs.dropCacheOnAll(ctx, j, t, spec, why, &n, now)
	text := fmt.Sprintf("%s, on %s", why.Text, plural.Of(n.Marked+n.Leaving, "host", "hosts"))
	if err != nil {
		text += ", before it was cut short"
	}
	j.Record(lifecycle.Event{At: now, Action: lifecycle.ActionDropCache, Code: why.Code, Pool: t.Pool, Repository: repositoryOf(t.Of), Reason: text})
	if err != nil {
		return n, fmt.Errorf("drop cache %s: %w", t.Name, err)
	}
	return n, nil
}

func (hs *Hosts) dropCacheOnAll(ctx context.Context, j *op.Recorder, t DropTarget, spec cache.Spec, why lifecycle.Reason, n *Dropped, now time.Time) error {
	records := listing.All(lifecycle.PageOf{}, func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return hs.Store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates, Pool: t.Pool}, page)
	})
	for r, err := range records {
		if err != nil {
			return fmt.Errorf("list hosts: %w", err)
		}
		if err := hs.dropCacheOn(ctx, j, r.InstanceID, spec, t.Of, why, n, now); err != nil {
			return err
		}
	}
	return nil
}

// cacheOf is the cache that is meant.
func (hs *Hosts) cacheOf(t DropTarget) (cache.Spec, error) {
	p, ok := hs.Pools[t.Pool]
	if !ok {
		return cache.Spec{}, lifecycle.NotFound("there is no pool %q", t.Pool)
	}
	for _, spec := range p.Caches {
		switch {
		case spec.Name != t.Name:
		case spec.ScopeOf() == cache.ScopeOwner && strings.Contains(t.Of, "/"):
			return spec, &InvalidError{Field: "repository", Rule: fmt.Sprintf("cache %s of pool %s is an owner's: write %s", t.Name, t.Pool, lifecycle.Owner(t.Of))}
		case spec.Key(t.Of) == "":
			return spec, &InvalidError{Field: "repository", Rule: fmt.Sprintf("cache %s of pool %s is a repository's: write OWNER/NAME", t.Name, t.Pool)}
		default:
			return spec, nil
		}
	}
	return cache.Spec{}, lifecycle.NotFound("pool %s has no cache %q", t.Pool, t.Name)
}

// repositoryOf is the name if it is a repository's, and empty for an owner.
func repositoryOf(name string) string {
	if !strings.Contains(name, "/") {
		return ""
	}
	return lifecycle.Canonical(name)
}

// dropCacheOn marks one host, if it may have the cache.
func (hs *Hosts) dropCacheOn(ctx context.Context, j *op.Recorder, instanceID string, spec cache.Spec, of string, why lifecycle.Reason, n *Dropped, now time.Time) error {
	var one Dropped
	_, err := hs.Change(ctx, instanceID, func(r lifecycle.Record) (lifecycle.Record, error) {
		one = Dropped{}
		if !r.MayHave(spec, of) {
			return r, nil
		}
		marked, ok := r.DropCache(spec, of)
		if !ok {
			one.Leaving = 1
			return r, hs.Retire(ctx, j, Retirement{Record: r, Why: why}, now)
		}
		one.Marked, marked.UpdatedAt = 1, now
		return hs.Store.UpdateInstance(ctx, marked)
	})
	n.Marked, n.Leaving = n.Marked+one.Marked, n.Leaving+one.Leaving
	if errors.Is(err, lifecycle.ErrNotFound) { // it has left
		return nil
	}
	return err
}

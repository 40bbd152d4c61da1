package sim

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// caching reports whether hosts keep caches: in every twentieth life, and in some of those with warm pools.
func (l *life) caching() bool {
	return (l.Config.Seed%20 == 12 || l.Config.Seed%40 == 33) && l.script == nil
}

// keepCaches gives two pools caches, and has runs of two repositories follow each other on their hosts.
func (l *life) keepCaches() {
	if !l.caching() {
		return
	}
	spec := func(name string, scope cache.Scope) cache.Spec {
		return cache.Spec{Name: name, Paths: []string{"~/" + name}, Size: 1 << 30, Scope: scope}
	}
	for name, caches := range map[string][]cache.Spec{
		"default": {spec("go", cache.ScopeRepository), {Name: "git", Holds: cache.HoldsGit, Size: 1 << 30}},
		"owner":   {spec("go", cache.ScopeRepository), spec("tools", cache.ScopeOwner)},
	} {
		p := l.Pools[name]
		p.Caches, p.Policy.IdleTime, p.Policy.MaxUses = caches, 8*time.Minute, 0
		l.Pools[name] = p
	}
	l.Caching = true
	l.workload.repositories, l.workload.pools, l.workload.classes = world.Repositories[:2], []string{"default", "owner"}, []string{"small"}
	l.workload.spot, l.workload.jobLength = 0, 8*time.Second
}

// dropCaches has operators drop caches of pools while the faults last.
func (l *life) dropCaches() {
	if !l.Caching || l.imaging() && l.stopping() { // there a drop would leave hardly a host to start
		return
	}
	mean := 5 * time.Minute
	if l.imaging() { // each time all hosts leave
		mean *= 3
	}
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		of := l.workload.repositories[l.Rand.IntN(len(l.workload.repositories))]
		switch {
		case l.imaging():
			l.dropCache("default", imagesName, of)
		case l.Rand.IntN(2) == 0:
			l.dropCache("default", "go", of)
		default:
			l.dropCache("owner", "tools", lifecycle.Owner(of))
		}
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Exp(mean, 5*mean), again)
}

func (l *life) dropCache(pool, name, of string) {
	r := l.anyReplica()
	if r == nil {
		return
	}
	target := fleet.DropTarget{Pool: pool, Of: of, Name: name}
	r.order("drop cache", func(now time.Time) error {
		_, err := r.fleet.DropCache(engine.Background, target, "", "operator", now)
		if err == nil {
			i := slices.IndexFunc(l.Pools[pool].Caches, func(s cache.Spec) bool { return s.Name == name })
			l.Dropped(pool, l.Pools[pool].Caches[i].Key(of))
		}
		return err
	})
}

// sources is what GitHub says of runs, in lives with caches; else nil.
func (l *life) sources() fleet.GitHubSources {
	if !l.Caching {
		return nil
	}
	return l.SourcesPort()
}

package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
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
		"default": {spec("go", cache.ScopeRepository), spec("npm", cache.ScopeRepository)},
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

// sources is what GitHub says of runs, in lives with caches; else nil.
func (l *life) sources() fleet.GitHubSources {
	if !l.Caching {
		return nil
	}
	return l.SourcesPort()
}

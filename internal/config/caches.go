package config

import (
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Cache is a set of directories of the jobs of a pool that outlives their runs: see cache.Spec.
type Cache struct {
	Name string `yaml:"name"`
	// Holds is files, or tools, actions, git or docker: then it has no paths.
	Holds cache.Holds `yaml:"holds"`
	Paths []string    `yaml:"paths"`
	// SizeMiB is the most that it may hold.
	SizeMiB int         `yaml:"size_mib"`
	Scope   cache.Scope `yaml:"scope"`
	// From are patterns of the branches whose runs may write; none: those that GitHub protects.
	From []string `yaml:"from"`
	// Keep is how long it stays after its last use. Longer fills the disks of hosts with what no run uses.
	Keep time.Duration `yaml:"keep"`
}

// SetDefaults are those of a cache that has its name, paths and size alone.
func (c *Cache) SetDefaults() {
	c.Holds, c.Scope, c.Keep = cache.HoldsFiles, cache.ScopeRepository, cache.DefaultKeep
}

// Spec is the same in the words of the fleet.
func (c Cache) Spec() cache.Spec {
	return cache.Spec{Name: c.Name, Holds: c.Holds, Paths: c.Paths, Size: uint64(max(c.SizeMiB, 0)) << 20, Scope: c.Scope, From: c.From, Keep: c.Keep}
}

// CacheSpecs are the caches of a pool, in the words of the fleet.
func (p Pool) CacheSpecs() []cache.Spec {
	var specs []cache.Spec
	for _, c := range p.Caches {
		specs = append(specs, c.Spec())
	}
	return specs
}

// validateCaches refuses what is unsound, and what would be accepted and do nothing.
func (c *Config) validateCaches(at strictyaml.Place, p Pool) {
	if len(p.Caches) == 0 {
		return
	}
	if p.Reuse == lifecycle.ReuseNone {
		at.Errorf("means nothing with reuse: none, since no host serves another run; leave it out")
		return
	}
	if _, docker := cache.Docker(p.CacheSpecs()); docker != p.Privileged {
		if docker {
			at.Errorf("has one that holds docker, which only jobs of a privileged pool can use; write privileged: true, or leave it out")
		} else {
			at.Errorf("is refused with privileged, except one that holds docker: a job that becomes root could write to the caches of its host, whatever branch it is of; leave out one of the two")
		}
		return
	}
	sound := true // each by itself, before they are looked at together
	for i, one := range p.Caches {
		item := at.Item(i)
		item.At("size_mib").Number(one.SizeMiB, cache.MinSize>>20, cache.MaxSize>>20)
		for n, pattern := range one.From {
			if err := policy.CheckPattern(pattern); err != nil {
				item.At("from").Item(n).Errorf("%v", err)
			}
		}
		item.At("keep").Between(one.Keep, cache.MinKeep, cache.MaxKeep)
		if !item.At("size_mib").Fine() || !item.At("keep").Fine() {
			sound = false
		} else if err := one.Spec().Validate(); err != nil {
			item.Errorf("%v", err)
			sound = false
		}
		c.validateCacheScope(item.At("scope"), p, one)
		if one.Holds == cache.HoldsGit {
			c.validateGitCache(item.At("holds"), p)
		}
	}
	if err := cache.ValidateAll(p.CacheSpecs()); err != nil && sound {
		at.Errorf("%v", err)
	}
}

// validateGitCache: hosts get a token that reads a repository, which an App alone can make, and which no job may read in its host's record.
func (c *Config) validateGitCache(at strictyaml.Place, p Pool) {
	switch {
	case len(c.GitHub.Apps) == 0:
		at.Errorf("is git, and only a GitHub App can give a host a token that reads one repository: set github.apps")
	case p.JobsReadMetadata:
		at.Errorf("is git, and with jobs_read_metadata a job could read the token of its host; leave out one of the two")
	}
}

// validateCacheScope: a cache goes no further than the hosts of its pool, and a host that may get a job of any repository of an owner has only
// caches of the owner.
func (c *Config) validateCacheScope(at strictyaml.Place, p Pool, one Cache) {
	switch scope := one.Scope; {
	case one.Holds == cache.HoldsDocker && scope == cache.ScopeRepository && p.Reuse == lifecycle.ReuseSameOwner:
		at.Errorf("is repository, and docker has one store for all runs of a host, which are of all repositories of an owner here; write owner, or reuse: same-repository")
	case scope == cache.ScopeOwner && p.Reuse != lifecycle.ReuseSameOwner:
		at.Errorf("is owner, and no host of the pool serves two repositories; write repository, or reuse: same-owner")
	case scope == cache.ScopeRepository && p.Jobs != nil && c.GitHub.Scope == ScopeOrganization:
		at.Errorf("is repository, and at organization scope GitHub chooses the repository of a job pool's host after its caches are there; write owner with reuse: same-owner")
	}
}

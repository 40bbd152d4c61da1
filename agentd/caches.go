package main

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// cacheConfig is a cache, in the keys that a pool of controld has for it.
type cacheConfig struct {
	Name string `yaml:"name"`
	// Holds is files, tools, actions, git or docker; files if it is empty.
	Holds string `yaml:"holds"`
	// Paths are directories below the home of jobs, such as ~/go/pkg/mod.
	Paths []string `yaml:"paths"`
	// SizeMiB is the most that the cache may hold.
	SizeMiB int64 `yaml:"size_mib"`
	// Scope is repository or owner.
	Scope string `yaml:"scope"`
	// Keep is how long the cache is kept after its last use.
	Keep time.Duration `yaml:"keep"`
}

func (c cacheConfig) spec() cache.Spec {
	return cache.Spec{Name: c.Name, Holds: cache.Holds(c.Holds), Paths: c.Paths, Size: uint64(max(c.SizeMiB, 0)) << 20, Scope: cache.Scope(c.Scope), Keep: c.Keep}
}

func specs(caches []cacheConfig) (all []cache.Spec) {
	for _, c := range caches {
		all = append(all, c.spec())
	}
	return all
}

func validateCaches(at strictyaml.Place, caches []cacheConfig) {
	if err := cache.ValidateAll(specs(caches)); err != nil {
		at.Errorf("%v", err)
	}
}

// caches are those that the host keeps. A job that is root could write to any of them, so a host of a privileged pool keeps none but that of docker, and
// others have no docker.
func (c config) caches() []cache.Spec {
	return slices.DeleteFunc(specs(c.Caches), func(s cache.Spec) bool { return (s.Holds == cache.HoldsDocker) != c.Host.Privileged })
}

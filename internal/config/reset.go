package config

import (
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// givesCredentials reports whether a job can have the credentials of its machine. They outlive a new root volume for hours.
func (p Pool) givesCredentials() bool { return p.Privileged || p.JobsReadMetadata }

// ResetsRoots reports whether a pool replaces the root volumes of its hosts.
func (c *Config) ResetsRoots() bool {
	for _, p := range c.Pools {
		if p.Reset == statement.LevelRootVolume {
			return true
		}
	}
	return false
}

// validateReset refuses what a new root volume makes useless.
func (c *Config) validateReset(at strictyaml.Place, p Pool) {
	if p.Reset != statement.LevelRootVolume {
		return
	}
	at = at.At("reset")
	if p.Reuse == lifecycle.ReuseNone {
		at.Errorf("means nothing with reuse: none, where no host serves another run; leave it out")
	}
	if len(p.Caches) > 0 {
		at.Errorf("is refused with caches, which go with the root volume or would outlive it; leave out one of the two")
	}
}

// Package settings says what a configuration means in the words of the fleet: its pools, classes and intervals. The daemon is made of
// them, and so is a fleet that plays a recorded history.
package settings

import (
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Pools are the pools of the configuration, by name.
func Pools(c *config.Config) (map[string]fleet.Pool, error) {
	pools := map[string]fleet.Pool{}
	for name, p := range c.Pools {
		warm, err := warmPool(p.Ahead())
		if err != nil {
			return nil, fmt.Errorf("pool %s: warm: %w", name, err)
		}
		stopped, err := warmPool(p.Stopped.Fresh())
		if err != nil {
			return nil, fmt.Errorf("pool %s: stopped: %w", name, err)
		}
		if stopped != nil {
			stopped.Policy.Key = "stopped.minimum"
		}
		times := c.Policy(name)
		if c.Backend() == config.BackendLocal {
			times.Cloud = "the process table" // the hosts are processes of this machine
		}
		pools[name] = fleet.Pool{
			Name: name, ResourceClasses: c.PoolResourceClasses(name), UsageClasses: c.PoolUsageClasses(name),
			InstanceTypes: p.InstanceTypes, Privileged: p.Privileged, DefaultLabels: p.DefaultLabels, RerunInterrupted: p.RerunInterrupted, Policy: times,
			Caches: p.CacheSpecs(), Maximum: p.Maximum, Warm: warm, Stopped: stopped, SpotBreaker: policy.SpotBreaker(p.SpotBreaker),
		}
	}
	return pools, nil
}

// warmPool is what a pool launches ahead of need, or nil for nothing.
func warmPool(w *config.Warm) (*fleet.WarmPool, error) {
	if w == nil {
		return nil, nil
	}
	policy, err := w.Policy()
	if err != nil {
		return nil, err
	}
	return &fleet.WarmPool{Policy: policy, Spec: w.Spec()}, nil
}

// Classes are the resource classes, by name.
func Classes(c *config.Config) map[string]fleet.Class {
	classes := map[string]fleet.Class{}
	for name, class := range c.ResourceClasses {
		classes[name] = fleet.Class(class)
	}
	return classes
}

// Timing are the intervals of the sweeps.
func Timing(s config.Sweeps) fleet.Timing {
	return fleet.Timing{Due: s.Due, Liveness: s.Liveness, Cloud: s.Cloud, Services: s.Services, Warm: s.Warm, Budgets: s.Budgets, Lease: s.Lease, Grace: s.Grace}
}

// Scope returns whose runners the hosts of a repository become: the repository's or its owner's.
func Scope(c *config.Config) func(repository string) string {
	if c.GitHub.Scope == config.ScopeOrganization {
		return func(repository string) string { return strings.ToLower(lifecycle.Owner(repository)) }
	}
	return strings.ToLower
}

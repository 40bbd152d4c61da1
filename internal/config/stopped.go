package config

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	maxStopped     = 100 // what is listed at once
	minStoppedTime = 10 * time.Minute
	maxStoppedTime = 30 * day
)

// Stopped has idle hosts stopped instead of ended.
type Stopped struct {
	// Maximum is how many of each resource class may be stopped at once. Each costs its disks, and spares a launch.
	Maximum int `yaml:"maximum"`
	// Time is how long a stopped host waits for a run. What is shorter than a night starts each morning cold.
	Time time.Duration `yaml:"time"`
}

// SetDefaults is what a section that names none of its keys has.
func (s *Stopped) SetDefaults() { s.Time = lifecycle.DefaultPolicy().StoppedTime }

// StopsHosts reports whether a pool stops its idle hosts.
func (c *Config) StopsHosts() bool {
	for _, p := range c.Pools {
		if p.Stopped != nil {
			return true
		}
	}
	return false
}

func (c *Config) validateStopped(at strictyaml.Place, p Pool) {
	s := p.Stopped
	if s == nil {
		return
	}
	at = at.At("stopped")
	at.At("maximum").Number(s.Maximum, 1, maxStopped)
	at.At("time").Between(s.Time, minStoppedTime, maxStoppedTime)
	if p.Reuse == lifecycle.ReuseNone {
		at.Errorf("means nothing with reuse: none, where no host waits for another run; leave it out")
	}
	if len(p.UsageClasses) > 0 && !slices.Contains(p.UsageClasses, lifecycle.UsageOnDemand) {
		at.Errorf("is for on-demand hosts, since EC2 does not stop spot ones, and the pool has none; leave it out, or add on-demand to usage_classes")
	}
}

package config

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

const (
	maxStopped     = 100 // what is listed at once
	minStoppedTime = 10 * time.Minute
	maxStoppedTime = 30 * day
)

// Stopped has idle hosts stopped instead of ended, and hosts launched to be stopped until a run needs them.
type Stopped struct {
	// Maximum is how many of each resource class may be stopped at once. Each costs its disks, and spares a launch.
	Maximum int `yaml:"maximum"`
	// Time is how long a stopped host waits for a run. What is shorter than a night starts each morning cold.
	Time time.Duration `yaml:"time"`
	// Hibernate has the memory of a host written to its root volume when it is stopped, so that a start goes on where it was.
	// Only hosts that were launched with it can be hibernated.
	Hibernate bool `yaml:"hibernate"`
	// Minimum of the maximum are stopped at any time and serve any repository, since no run has used them.
	// They are launched for that, as ResourceClass and InstanceTypes say.
	Minimum       int      `yaml:"minimum"`
	ResourceClass string   `yaml:"resource_class"`
	InstanceTypes []string `yaml:"instance_types"`
	// Schedules want more of those at their times; the first that holds counts.
	Schedules []WarmPeriod `yaml:"schedules"`
}

// SetDefaults is what a section that names none of its keys has.
func (s *Stopped) SetDefaults() {
	var w Warm
	w.SetDefaults()
	s.Time, s.ResourceClass, s.InstanceTypes = lifecycle.DefaultPolicy().StoppedTime, w.ResourceClass, w.InstanceTypes
}

// stoppedLead is how long before it is wanted a host is launched to be stopped: it boots, is prepared and stops.
const stoppedLead = 5 * time.Minute

// Fresh is what the pool launches to be stopped, in the words of a warm pool; nil: nothing.
func (s *Stopped) Fresh() *Warm {
	if s == nil || s.fresh() == 0 {
		return nil
	}
	return &Warm{
		ResourceClass: s.ResourceClass, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: s.InstanceTypes,
		MinimumIdle: s.Minimum, Lead: stoppedLead, WarmTime: s.Time, Schedules: s.Schedules,
	}
}

// fresh is how many stopped hosts that no run has used the pool has at most.
func (s *Stopped) fresh() int {
	most := s.Minimum
	for _, p := range s.Schedules {
		most = max(most, p.IdleCount)
	}
	return most
}

// StopsHosts reports whether a pool stops its idle hosts.
func (c *Config) StopsHosts() bool {
	for _, p := range c.Pools {
		if p.Stopped != nil {
			return true
		}
	}
	return false
}

func (c *Config) validateStopped(at strictyaml.Place, pool string) {
	p := c.Pools[pool]
	s := p.Stopped
	if s == nil {
		return
	}
	at = at.At("stopped")
	at.At("maximum").Number(s.Maximum, 1, maxStopped)
	at.At("time").Between(s.Time, minStoppedTime, maxStoppedTime)
	if p.Reuse == lifecycle.ReuseNone && s.fresh() == 0 {
		at.Errorf("means nothing with reuse: none, where no host waits for another run; leave it out, or write a minimum of hosts that no run has used")
	}
	if len(p.UsageClasses) > 0 && !slices.Contains(p.UsageClasses, lifecycle.UsageOnDemand) {
		at.Errorf("is for on-demand hosts, since EC2 does not stop spot ones, and the pool has none; leave it out, or add on-demand to usage_classes")
	}
	c.validateHibernate(at.At("hibernate"), pool)
	c.validateFresh(at, pool)
}

// What EC2 needs to hibernate a host ("Prerequisites for EC2 instance hibernation"): at most 150 GiB of memory, and room for that on the
// root volume beside all else.
const (
	maxHibernatedMiB = 150 << 10
	hibernateRoomGiB = 8
)

// HibernateMiB is the most memory that a host of a pool may have so that it can be hibernated; 0: it is not hibernated. There must be an AWS section.
func (c *Config) HibernateMiB(pool string) int {
	if s := c.Pools[pool].Stopped; s == nil || !s.Hibernate {
		return 0
	}
	return min(maxHibernatedMiB, max(c.PoolEC2(pool).RootVolumeGiB-hibernateRoomGiB, 1)<<10)
}

// validateHibernate checks that EC2 can hibernate the hosts that the pool launches.
func (c *Config) validateHibernate(at strictyaml.Place, pool string) {
	p := c.Pools[pool]
	switch {
	case !p.Stopped.Hibernate:
		return
	case c.Backend() == BackendLocal:
		at.Errorf("is for hosts in EC2, and there is no aws section; leave it out")
		return
	case slices.Contains(c.PoolUsageClasses(pool), lifecycle.UsageSpot):
		at.Errorf("is for pools without spot hosts, which EC2 would hibernate in place of ending them; write usage_classes: [on-demand], or leave it out")
	case p.Reset == statement.LevelRootVolume:
		at.Errorf("is refused with reset: root-volume, since the memory of a host is written to the root volume that it was launched with; leave out one of the two")
	}
	most := c.HibernateMiB(pool)
	for _, name := range c.PoolResourceClasses(pool) {
		switch least := c.ResourceClasses[name].MemoryMiB; {
		case least > maxHibernatedMiB:
			at.Errorf("is for hosts with at most %d MiB of memory, and those of class %s have %d; name others in resource_classes, or leave it out", maxHibernatedMiB, name, least)
		case least > most:
			at.Errorf("needs room for the memory of a host on its root volume: class %s has at least %d MiB; write a root_volume_gib of at least %d, or name smaller classes in resource_classes",
				name, least, (least+1023)>>10+hibernateRoomGiB)
		}
	}
}

// validateFresh checks the hosts that are launched to be stopped.
func (c *Config) validateFresh(at strictyaml.Place, pool string) {
	p := c.Pools[pool]
	s := p.Stopped
	count := func(at strictyaml.Place, n int) {
		at.Number(n, 0, maxStopped)
		switch {
		case n > s.Maximum:
			at.Errorf("is %d, more than the maximum of stopped hosts (%d); write at most as much", n, s.Maximum)
		case p.Maximum != nil && n > *p.Maximum:
			at.Errorf("is %d, more than the pool's maximum (%d); write at most as much", n, *p.Maximum)
		}
	}
	count(at.At("minimum"), s.Minimum)
	few(at.At("schedules"), len(s.Schedules))
	for i, period := range s.Schedules {
		item := at.At("schedules").Item(i)
		count(item.At("idle_count"), period.IdleCount)
		period.IdleCount = 0 // it has been looked at
		wrongPeriod(item, period.period)
	}
	w := s.Fresh()
	if w == nil {
		return
	}
	c.validateSpec(at, pool, w.Spec())
	if p.MaxAge > 0 && stoppedLead > p.MaxAge/2 {
		at.At("minimum").Errorf("needs a max_age of at least %s, or hosts would be replaced as soon as they are stopped; write more, or leave it out", 2*stoppedLead)
	}
}

package config

import (
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Warm keeps hosts of a pool ready that no run has used, for the first run of any
// repository that asks for such hosts.
type Warm struct {
	// ResourceClass, UsageClass, InstanceTypes and AllowOnDemandFallback are what
	// each host is launched with, as in a Provision.
	ResourceClass         string               `yaml:"resource_class"`
	UsageClass            lifecycle.UsageClass `yaml:"usage_class"`
	InstanceTypes         []string             `yaml:"instance_types"`
	AllowOnDemandFallback bool                 `yaml:"allow_on_demand_fallback"`
	// MinimumIdle hosts are ready at any time. They are paid for all the time.
	MinimumIdle int `yaml:"minimum_idle"`
	// Lead is how long before it is wanted a host is launched. Shorter than a boot and
	// the interval of the warm sweep together leaves times without hosts, at the
	// beginning of a schedule and whenever hosts are replaced; longer pays for more.
	Lead time.Duration `yaml:"lead"`
	// WarmTime is how long a fresh host waits before another takes its place.
	// Shorter launches more; longer lets what its image fetches at boot grow old.
	WarmTime time.Duration `yaml:"warm_time"`
	// Schedules want more hosts at their times; the first that holds counts.
	Schedules []WarmPeriod `yaml:"schedules"`
}

// WarmPeriod is a policy.Period as it is written for a warm pool.
type WarmPeriod struct {
	Cron     string `yaml:"cron"`
	TimeZone string `yaml:"time_zone"`
	// IdleCount is how many fresh hosts are ready while it holds.
	IdleCount int `yaml:"idle_count"`
}

// SetDefaults are those of a Provision, and of a host that boots in a minute.
func (w *Warm) SetDefaults() {
	w.ResourceClass = defaultResourceClass
	w.UsageClass = lifecycle.UsageOnDemand
	w.InstanceTypes = []string{"c*", "m*", "r*"}
	w.Lead = 3 * time.Minute
	w.WarmTime = lifecycle.DefaultPolicy().WarmTime
}

// SetDefaults are those of a schedule that has its cron alone.
func (p *WarmPeriod) SetDefaults() { p.TimeZone = "UTC" }

// Spec is what each host is launched with.
func (w *Warm) Spec() lifecycle.Spec {
	return lifecycle.Spec{ResourceClass: w.ResourceClass, UsageClass: w.UsageClass, InstanceTypes: w.InstanceTypes, AllowOnDemand: w.AllowOnDemandFallback}
}

// Bounds of a warm pool: its hosts are listed in one row.
const (
	maxWarmHosts = 1000
	maxLead      = time.Hour
)

// validateWarm checks a pool's maximum and its warm hosts.
func (c *Config) validateWarm(at strictyaml.Place, pool string) {
	p := c.Pools[pool]
	number(at.At("maximum"), p.Maximum, 0, maxLimited)
	w := p.Warm
	if w == nil {
		return
	}
	at = at.At("warm")
	c.validateSpec(at, pool, w.Spec())
	w.validateCount(at.At("minimum_idle"), w.MinimumIdle, p.Maximum)
	w.validateTimes(at, c.Timeouts.Creation, p.MaxAge)
	few(at.At("schedules"), len(w.Schedules))
	for i, period := range w.Schedules {
		item := at.At("schedules").Item(i)
		w.validateCount(item.At("idle_count"), period.IdleCount, p.Maximum)
		period.IdleCount = 0 // it has been looked at
		wrongPeriod(item, period.period)
	}
}

func (w *Warm) validateCount(at strictyaml.Place, n, maximum int) {
	number(at, n, 0, maxWarmHosts)
	if maximum > 0 && n > maximum {
		at.Errorf("is %d, more than the pool's maximum (%d); write at most as much", n, maximum)
	}
}

// validateTimes: a host counts as ready until a lead before its end. With a lead
// that is most of its time, hosts would be replaced as soon as they are there.
func (w *Warm) validateTimes(at strictyaml.Place, creation, oldest time.Duration) {
	between(at.At("lead"), w.Lead, 0, maxLead)
	between(at.At("warm_time"), w.WarmTime, minAge, day)
	switch {
	case w.WarmTime < creation:
		at.At("warm_time").Errorf("is %s, less than timeouts.creation (%s); write at least as much", w.WarmTime, creation)
	case w.Lead > w.WarmTime/2:
		at.At("lead").Errorf("is %s, more than half of warm_time (%s): hosts would be replaced as soon as they are ready; write less", w.Lead, w.WarmTime)
	case oldest > 0 && w.Lead > oldest/2:
		at.At("lead").Errorf("is %s, more than half of the pool's max_age (%s): hosts would be replaced as soon as they are ready; write less", w.Lead, oldest)
	}
}

func (p WarmPeriod) period() (policy.Period, error) {
	return policy.ParsePeriod(p.Cron, p.TimeZone, p.IdleCount, "")
}

// Policy is the same in the words of the policy, without the pool's maximum.
func (w *Warm) Policy() (policy.WarmPolicy, error) {
	made := policy.WarmPolicy{MinimumIdle: w.MinimumIdle, Lead: w.Lead}
	for _, p := range w.Schedules {
		period, err := p.period()
		if err != nil {
			return policy.WarmPolicy{}, err
		}
		made.Schedules = append(made.Schedules, period)
	}
	return made, nil
}

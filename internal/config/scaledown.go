package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/policy"
)

// ScaleDown has hosts ended that have no job, and such as GitHub does not know.
// All hosts run Linux, so that its durations are of that.
type ScaleDown struct {
	// MinimumRunning: a host that has been there for its run for less is left alone. Shorter than GitHub
	// takes to give a run its jobs, and hosts go that are about to be used; longer pays for idle ones.
	MinimumRunning time.Duration `yaml:"minimum_running_time"`
	// BootTime: a host that GitHub does not list for longer is an orphan. Shorter than a boot with its
	// registration and each new host is looked at twice; longer pays for hosts that no job can reach.
	BootTime time.Duration `yaml:"boot_time"`
	// IdleConfirmation: how long a host must have been idle, from the first idle reading on; 0: one reading
	// is enough. Longer spares hosts between two jobs of a run, and pays for them.
	IdleConfirmation time.Duration `yaml:"idle_confirmation"`
	// Idle are the periods in which idle hosts are kept; the first that holds counts.
	Idle []IdlePeriod `yaml:"idle"`
}

// IdlePeriod is a policy.Period as it is written.
type IdlePeriod struct {
	Cron     string `yaml:"cron"`
	TimeZone string `yaml:"time_zone"`
	// IdleCount is how many idle hosts of each owner are kept.
	IdleCount int             `yaml:"idle_count"`
	Eviction  policy.Eviction `yaml:"eviction_strategy"`
}

// SetDefaults are those of a section that is empty.
func (s *ScaleDown) SetDefaults() {
	s.MinimumRunning = policy.DefaultMinimumRunning()[linux]
	s.BootTime = policy.DefaultBootTime()[linux]
}

// SetDefaults are those of a period that has its cron alone.
func (p *IdlePeriod) SetDefaults() { p.TimeZone, p.Eviction = "UTC", policy.EvictOldest }

// linux is what the hosts run.
const linux = "linux"

// maxIdle is more hosts than EC2 gives an account without asking.
const maxIdle = 10_000

func (s ScaleDown) validate(at strictyaml.Place) {
	at.At("minimum_running_time").Between(s.MinimumRunning, 0, day)
	at.At("boot_time").Between(s.BootTime, 10*time.Second, day)
	at.At("idle_confirmation").Between(s.IdleConfirmation, 0, day)
	few(at.At("idle"), len(s.Idle))
	for i, p := range s.Idle {
		item := at.At("idle").Item(i)
		item.At("idle_count").Number(p.IdleCount, 0, maxIdle)
		p.IdleCount = 0 // it has been looked at
		wrongPeriod(item, p.period)
	}
}

func (p IdlePeriod) period() (policy.Period, error) {
	return policy.ParsePeriod(p.Cron, p.TimeZone, p.IdleCount, p.Eviction)
}

// Policy is the same in the words of the policy.
func (s ScaleDown) Policy() (policy.ScaleDown, error) {
	made := policy.ScaleDown{
		MinimumRunning: policy.ByOS{linux: s.MinimumRunning}, BootTime: policy.ByOS{linux: s.BootTime}, IdleConfirmation: s.IdleConfirmation,
	}
	for _, p := range s.Idle {
		period, err := p.period()
		if err != nil {
			return policy.ScaleDown{}, err
		}
		made.Idle = append(made.Idle, period)
	}
	return made, nil
}

// wrongPeriod tells all that is wrong with a period, each at its field.
func wrongPeriod(at strictyaml.Place, parse func() (policy.Period, error)) {
	_, err := parse()
	var wrong policy.PeriodErrors
	if errors.As(err, &wrong) {
		for _, e := range wrong {
			at.At(e.Field).Errorf("is wrong: %s", e.Rule)
		}
	}
}

// periodWarnings are sentences about periods, of the list at key, that are hardly what was meant.
func periodWarnings(key string, periods []policy.Period) []string {
	var warnings []string
	for i, p := range periods {
		if brief := p.Brief(); brief > 0 {
			warnings = append(warnings, fmt.Sprintf("%s[%d] (%s) holds for %s", key, i, p.Cron, instead(brief)))
		}
		for j, before := range periods[:i] {
			if before.Covers(p) {
				warnings = append(warnings, fmt.Sprintf("%s[%d] (%s) never counts: [%d] (%s) comes before it, and holds whenever it does", key, i, p.Cron, j, before.Cron))
				break
			}
		}
	}
	return warnings
}

// instead is how long a period holds that is brief, and what to write for a longer one.
func instead(brief time.Duration) string {
	switch brief {
	case time.Minute:
		return "a minute at most each time; write * for the minute if all of the hour is meant"
	case time.Second:
		return "a second each time; write * for the second if all of the minute is meant"
	}
	return fmt.Sprintf("%s at most each time; write * for the second if all of the minute is meant", brief)
}

// scheduleWarnings are those of scale-down and of the warm pools. What is wrong with
// a period was refused before.
func (c *Config) scheduleWarnings() []string {
	var warnings []string
	if c.ScaleDown != nil {
		if p, err := c.ScaleDown.Policy(); err == nil {
			warnings = append(warnings, periodWarnings("scale_down.idle", p.Idle)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		if w := c.Pools[name].Warm; w != nil {
			if p, err := w.Policy(); err == nil {
				warnings = append(warnings, periodWarnings("pools."+name+".warm.schedules", p.Schedules)...)
			}
		}
	}
	return warnings
}

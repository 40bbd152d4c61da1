package config

import (
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
	between(at.At("minimum_running_time"), s.MinimumRunning, 0, day)
	between(at.At("boot_time"), s.BootTime, 10*time.Second, day)
	between(at.At("idle_confirmation"), s.IdleConfirmation, 0, day)
	few(at.At("idle"), len(s.Idle))
	for i, p := range s.Idle {
		item := at.At("idle").Item(i)
		number(item.At("idle_count"), p.IdleCount, 0, maxIdle)
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

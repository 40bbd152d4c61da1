package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

// Policy is that of the hosts of a pool.
func (c *Config) Policy(pool string) lifecycle.Policy {
	p, t := c.Pools[pool], c.Timeouts
	policy := lifecycle.DefaultPolicy()
	policy.CreationTimeout = t.Creation
	policy.ClaimTimeout = t.Claim
	policy.MaxRuntime = t.MaxRuntime
	policy.ReleaseTimeout = t.Release
	policy.IdleTime = t.Idle
	policy.Silence = t.Silence
	policy.ExternalTimeout = t.External
	policy.UnattendedTimeout = t.Unattended
	policy.ClaimMargin = t.ClaimMargin
	policy.ForgetAfter = t.Forget
	policy.Reuse, policy.Reset = p.Reuse, p.Reset
	policy.KeepsTrust = p.givesCredentials()
	if docker, ok := cache.Docker(p.CacheSpecs()); ok {
		policy.DockerCache = docker.Name
	}
	policy.MaxUses, policy.Awake = p.MaxUses, p.Awake
	policy.MaxAge, policy.Drift, policy.Standby = p.MaxAge, p.Drift, c.standby(p)
	if p.MaxRuntime != nil {
		policy.MaxRuntime = *p.MaxRuntime
	}
	if p.IdleTime != nil {
		policy.IdleTime = *p.IdleTime
	}
	if s := p.Stopped; s != nil {
		policy.StoppedMaximum, policy.StopsFresh, policy.StoppedTime = s.Maximum-s.fresh(), s.fresh() > 0, s.Time
		policy.Hibernates = s.Hibernate
	}
	if w := p.Ahead(); w != nil {
		policy.WarmTime = max(w.WarmTime, t.Creation)
	}
	return policy
}

// PoolResourceClasses are the names of the resource classes of a pool.
func (c *Config) PoolResourceClasses(pool string) []string {
	if classes := c.Pools[pool].ResourceClasses; len(classes) > 0 {
		return slices.Clone(classes)
	}
	return c.classNames()
}

func (c *Config) classNames() []string { return slices.Sorted(maps.Keys(c.ResourceClasses)) }

// PoolUsageClasses are the usage classes of a pool.
func (c *Config) PoolUsageClasses(pool string) []lifecycle.UsageClass {
	if classes := c.Pools[pool].UsageClasses; len(classes) > 0 {
		return slices.Clone(classes)
	}
	return slices.Clone(lifecycle.UsageClasses)
}

// Warnings are sentences about what is allowed, and dangerous or of no use.
// They are to be said out loud at each start.
func (c *Config) Warnings() []string {
	var warnings []string
	say := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if len(c.Ignored) > 0 {
		say("ignored, since controld dev has its own (its flags have the addresses and the directory): %s", strings.Join(c.Ignored, ", "))
	}
	if c.GRPC.TLS != nil && c.GRPC.TLS.ClientCAFile == "" && len(c.Callers.Repositories) == 0 {
		say("grpc.tls is there without client_ca_file and callers: every call to %s is refused, since callers cannot be identified", c.GRPC.Addr)
	}
	warnings = append(warnings, c.callerWarnings()...)
	warnings = append(warnings, c.serviceWarnings()...)
	warnings = append(warnings, c.pageWarnings()...)
	warnings = append(warnings, c.scheduleWarnings()...)
	if c.Backend() == BackendLocal && !c.WithoutHosts {
		say("compute.process runs jobs as this program's own user: they can read and change the store and other hosts; serve only repositories that you trust")
	}
	if c.ScaleDown != nil && c.Webhooks == nil {
		say("scale_down is there without webhooks: a run whose hosts were all idle and ended gets none for a job that is queued after that")
	}
	if note := longRuntime(c.Timeouts.MaxRuntime); note != "" {
		say("timeouts.max_runtime is %s", note)
	}
	warnings = append(warnings, c.Limits.warnings()...)
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		p := c.Pools[name]
		if note := longRuntime(c.Policy(name).MaxRuntime); p.MaxRuntime != nil && note != "" {
			say("pool %s has a max_runtime of %s", name, note)
		}
		for _, w := range []struct {
			holds bool
			text  string
		}{
			{p.Privileged, "is privileged: a job can become root on its host and read and change all that is on it"},
			{p.JobsReadMetadata, "lets jobs read the instance metadata: they can end their host and write its report, as its own agent can"},
			{p.Reuse == lifecycle.ReuseSameOwner, "reuses hosts across the repositories of an owner: what one leaves behind can reach another"},
			{p.DefaultLabels, "registers its runners with GitHub's default labels (default_labels): any job of the same scope that names these alone, a fork's too, comes to its hosts"},
			{p.Maximum != nil && *p.Maximum == 0, "may have no host (maximum: 0), so it serves nothing; take maximum out for any number"},
			{p.Jobs != nil && p.Jobs.Forks, "gives hosts to jobs of forks: who opens a pull request runs what they like there"},
			{p.Privileged && p.Reuse != lifecycle.ReuseNone && p.Reset != statement.LevelRootVolume,
				"is privileged and reused: a job can leave something behind that no clean-up finds, for every later run with " + trusted(p.Reuse)},
		} {
			if w.holds {
				say("pool %s %s", name, w.text)
			}
		}
	}
	return warnings
}

// longRuntime says what a maximum runtime beyond the default costs; it is empty for a shorter one.
func longRuntime(d time.Duration) string {
	if d <= lifecycle.DefaultPolicy().MaxRuntime {
		return ""
	}
	return fmt.Sprintf("%s: a run that is never released keeps its hosts, and their cost, that long", d)
}

// trusted names whose runs may follow each other.
func trusted(r lifecycle.Reuse) string {
	if r == lifecycle.ReuseSameOwner {
		return "the same owner"
	}
	return "the same repository"
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Limits bound how many hosts may serve one repository or owner at once. With less than
// its runs ask for, the runs of a repository wait for each other.
type Limits struct {
	// HostsPerRepository is for the runs of one repository; nil or 0: any number.
	HostsPerRepository *int `yaml:"hosts_per_repository"`
	// HostsPerOwner is for those of all repositories of one owner; nil or 0: any number.
	HostsPerOwner *int `yaml:"hosts_per_owner"`
	// Budgets are what repositories and owners may spend in a month.
	Budgets budget.List `yaml:"budgets"`
}

// maxLimited is the largest limit on hosts: all that count against one are in one row,
// and DynamoDB has rows of 400 KB.
const maxLimited = 1000

func (l Limits) validate(at strictyaml.Place) {
	most := l.Policy()
	at.At("hosts_per_repository").Number(most.HostsPerRepository, 0, maxLimited)
	at.At("hosts_per_owner").Number(most.HostsPerOwner, 0, maxLimited)
	if most.HostsPerOwner > 0 && most.HostsPerRepository > most.HostsPerOwner {
		at.At("hosts_per_repository").Errorf("is %d, more than hosts_per_owner (%d); write at most as much", most.HostsPerRepository, most.HostsPerOwner)
	}
	validateBudgets(l.Budgets, at.At("budgets"))
}

// warnings name the limits that are written as 0: at a pool's maximum that means none.
func (l Limits) warnings() (warnings []string) {
	for key, n := range map[string]*int{"hosts_per_owner": l.HostsPerOwner, "hosts_per_repository": l.HostsPerRepository} {
		if n != nil && *n == 0 {
			warnings = append(warnings, fmt.Sprintf("limits.%s is 0, which is no limit, unlike 0 of a pool's maximum; take it out for any number", key))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// Policy is the same in the words of the policy.
func (l Limits) Policy() policy.Limits {
	number := func(n *int) int {
		if n == nil {
			return 0
		}
		return *n
	}
	return policy.Limits{HostsPerRepository: number(l.HostsPerRepository), HostsPerOwner: number(l.HostsPerOwner)}
}

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
	if p.Maximum != nil {
		at.At("maximum").Number(*p.Maximum, 0, maxLimited)
	}
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

func (w *Warm) validateCount(at strictyaml.Place, n int, maximum *int) {
	at.Number(n, 0, maxWarmHosts)
	if maximum != nil && n > *maximum {
		at.Errorf("is %d, more than the pool's maximum (%d); write at most as much", n, *maximum)
	}
}

// validateTimes: a host counts as ready until a lead before its end. With a lead
// that is most of its time, hosts would be replaced as soon as they are there.
func (w *Warm) validateTimes(at strictyaml.Place, creation, oldest time.Duration) {
	at.At("lead").Between(w.Lead, 0, maxLead)
	at.At("warm_time").Between(w.WarmTime, minAge, day)
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

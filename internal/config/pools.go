package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
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
	policy.Reuse = p.Reuse
	policy.MaxUses = p.MaxUses
	policy.MaxAge, policy.Drift = p.MaxAge, p.Drift
	if p.MaxRuntime != nil {
		policy.MaxRuntime = *p.MaxRuntime
	}
	if p.IdleTime != nil {
		policy.IdleTime = *p.IdleTime
	}
	if p.Warm != nil {
		policy.WarmTime = p.Warm.WarmTime
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
	warnings = append(warnings, c.scheduleWarnings()...)
	if c.Backend() == BackendLocal {
		say("compute.process runs jobs as this program's own user: they can read and change the store and other hosts; serve only repositories that you trust")
	}
	if c.ScaleDown != nil && c.Webhooks == nil {
		say("scale_down is there without webhooks: a run whose hosts were all idle and ended gets none for a job that is queued after that")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		p := c.Pools[name]
		for _, w := range []struct {
			holds bool
			text  string
		}{
			{p.Privileged, "is privileged: a job can become root on its host and read and change all that is on it"},
			{p.JobsReadMetadata, "lets jobs read the instance metadata: they can end their host and write its report, as its own agent can"},
			{p.Reuse == lifecycle.ReuseSameOwner, "reuses hosts across the repositories of an owner: what one leaves behind can reach another"},
			{p.Jobs != nil && p.Jobs.Forks, "gives hosts to jobs of forks: who opens a pull request runs what they like there"},
			{p.Privileged && p.Reuse != lifecycle.ReuseNone,
				"is privileged and reused: a job can leave something behind that no clean-up finds, for every later run with " + trusted(p.Reuse)},
		} {
			if w.holds {
				say("pool %s %s", name, w.text)
			}
		}
	}
	return warnings
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

package config

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Default is the configuration of an empty file. Only the token for GitHub
// cannot be guessed: without one it does not pass the rules.
func Default() *Config {
	policy := lifecycle.DefaultPolicy()
	c := &Config{
		GRPC:  GRPC{Addr: "127.0.0.1:7443"},
		HTTP:  HTTP{Addr: "127.0.0.1:7080"},
		Store: Store{SQLite: SQLite{Path: "/var/lib/remuda/remuda.db"}},
		Compute: Compute{Process: Process{
			Directory: "/var/lib/remuda/compute",
			Agentd:    "agentd",
			Runner:    "/opt/actions-runner",
			Zones:     []string{"local-a"},
		}},
		GitHub:  GitHub{URL: "https://api.github.com", Scope: ScopeRepository},
		Callers: Callers{Issuer: "https://token.actions.githubusercontent.com"},
		// Two GiB for each vCPU, as EC2's c types of the same names have.
		ResourceClasses: map[string]ResourceClass{
			"large":    {CPU: 2, MemoryMiB: 4 << 10},
			"xlarge":   {CPU: 4, MemoryMiB: 8 << 10},
			"2xlarge":  {CPU: 8, MemoryMiB: 16 << 10},
			"4xlarge":  {CPU: 16, MemoryMiB: 32 << 10},
			"8xlarge":  {CPU: 32, MemoryMiB: 64 << 10},
			"16xlarge": {CPU: 64, MemoryMiB: 128 << 10},
		},
		Pools: map[string]Pool{},
		Timeouts: Timeouts{
			Creation:    policy.CreationTimeout,
			Claim:       policy.ClaimTimeout,
			MaxRuntime:  policy.MaxRuntime,
			Release:     policy.ReleaseTimeout,
			Idle:        policy.IdleTime,
			Silence:     policy.Silence,
			External:    policy.ExternalTimeout,
			Unattended:  policy.UnattendedTimeout,
			ClaimMargin: policy.ClaimMargin,
			Forget:      policy.ForgetAfter,
		},
		Sweeps: Sweeps{
			Due:       5 * time.Second,
			Liveness:  30 * time.Second,
			Cloud:     5 * time.Minute,
			Services:  time.Minute,
			ScaleDown: 5 * time.Minute,
			Warm:      30 * time.Second,
			Budgets:   10 * time.Minute,
			Lease:     15 * time.Second,
			Grace:     5 * time.Minute,
		},
		Cost:    Cost{SpotPercent: price.DefaultSpotPercent},
		Tracing: Tracing{SamplePercent: 100},
		Log:     Log{Level: "info", Format: "text"},
	}
	var pool Pool
	pool.SetDefaults()
	c.Pools[DefaultPool] = pool
	return c
}

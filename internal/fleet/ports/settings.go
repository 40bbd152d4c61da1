package ports

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Class is a resource class: what a host of it must have at least.
type Class struct {
	CPU       int
	MemoryMiB int
}

// Pool is a named entry of the configuration.
type Pool struct {
	Name            string
	ResourceClasses []string
	UsageClasses    []lifecycle.UsageClass
	// InstanceTypes are the patterns that the pool allows; empty: any.
	InstanceTypes []string
	// Privileged says out loud that a job may become root on its host.
	Privileged bool
	// RerunInterrupted has the failed jobs of a run started again, once,
	// when an interrupted host took one of them with it.
	RerunInterrupted bool
	Policy           lifecycle.Policy
	// Maximum is how many hosts it may have at once; 0: any number.
	Maximum int
	// SpotBreaker pauses launches of spot hosts after many interruptions.
	SpotBreaker policy.SpotBreaker
	// Warm says what is launched ahead of need; nil: nothing is.
	Warm *WarmPool
}

// Timing holds the intervals of the use-cases. The zero value of a field means its default.
type Timing struct {
	// Poll is how often a waiting operation reads the reports it waits for.
	Poll time.Duration
	// Takeover is how long a request may stand still before a sweep goes on
	// with it. An operation that is alive renews it at half that time.
	Takeover time.Duration
	// Relaunch is how long a request that was short of capacity waits before it looks again.
	Relaunch time.Duration
	// Grace: machines younger than this are never called leaked.
	Grace time.Duration
	// Due, Liveness and Cloud are the intervals of the sweeps.
	Due, Liveness, Cloud time.Duration
	// Warm is the interval at which warm pools are topped up.
	Warm time.Duration
	// Services is the interval at which services of runners are looked at.
	Services time.Duration
	// Lease is how long a sweeper may be quiet before another takes over.
	Lease time.Duration
	// KeepRequests is how long a settled request is kept.
	KeepRequests time.Duration
}

func (t Timing) WithDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&t.Poll, 250*time.Millisecond)
	def(&t.Takeover, 20*time.Second)
	def(&t.Relaunch, 10*time.Second)
	def(&t.Grace, 5*time.Minute)
	def(&t.Due, 5*time.Second)
	def(&t.Liveness, 30*time.Second)
	def(&t.Cloud, 5*time.Minute)
	def(&t.Warm, 30*time.Second)
	def(&t.Services, time.Minute)
	def(&t.Lease, 15*time.Second)
	def(&t.KeepRequests, 7*24*time.Hour)
	return t
}

// JobPool is a pool whose hosts run one job each.
type JobPool struct {
	policy.JobPool
	// Labels are those of its runners.
	Labels []string
	// Spec is what a turn asks for. Count, labels and scope are filled in.
	Spec lifecycle.Spec
	// Repositories may use it: patterns of "owner/name" in which * stands for any part of a name.
	Repositories []string
	// Forks lets jobs through whose run is of a fork.
	Forks bool
}

// WarmPool is what a pool launches ahead of need: fresh hosts, which no run has
// used, for the first run that claims one.
type WarmPool struct {
	// Spec is what each host is launched with: its resource and usage class,
	// instance types and whether spot may fall back to on-demand.
	Spec lifecycle.Spec
	// Policy is how many there are to be. Its maximum is Pool.Maximum.
	Policy policy.WarmPolicy
}

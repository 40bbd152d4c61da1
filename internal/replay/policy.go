package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Policy is what a fleet goes by.
type Policy struct {
	Pools   map[string]Pool
	Classes map[string]fleet.Class
	Limits  policy.Limits
	// ScaleDown ends idle hosts every ScaleDownEvery; nil: nothing does.
	ScaleDown      *policy.ScaleDown
	ScaleDownEvery time.Duration
	// Scope names the owner of the runners of a repository.
	Scope  func(repository string) string
	Timing fleet.Timing
	Prices price.List
	// Archs are the architectures that hosts may have; none: any.
	Archs []string
}

// Pool is a pool and the jobs that it serves.
type Pool struct {
	fleet.Pool
	// Spec is what a job asks for.
	Spec lifecycle.Spec
	// Labels are those of a job pool; nil: the pool serves the jobs that no job pool does, if it is the default one.
	Labels []string
	// Repositories may use a job pool.
	Repositories []string
	// Registered are the hosts of a job pool that wait registered. They are not played, which the notes say.
	Registered int
}

// Times are how long what hosts do takes, by what is measured of real ones.
type Times struct {
	// Boot is from the launch of a machine to the first report of its agent, and Start from the start of a stopped one.
	Boot, Start time.Duration
	// Register is from when a host has read of its run until its runner listens, and Clean from when it has read of its release until it is clean.
	Register, Clean time.Duration
	// Hears is how long a host takes to read a change of its record while it waits, HearsResting while it rests or listens ahead of need,
	// and HearsBusy at its job: half of the interval at which it reads.
	Hears, HearsResting, HearsBusy time.Duration
}

// DefaultTimes are those of docs/planning.md: an image with everything in it, and the intervals of the agent.
func DefaultTimes() Times {
	return Times{
		Boot: 60 * time.Second, Start: 30 * time.Second, Register: 2 * time.Second, Clean: 3 * time.Second,
		Hears: 250 * time.Millisecond, HearsResting: time.Second, HearsBusy: 2500 * time.Millisecond,
	}
}

// forgetAfter is how long what is over is kept: nothing asks for it.
const forgetAfter = time.Minute

// played is the policy as it is played, and in sentences what of it is not.
func (p Policy) played() (map[string]fleet.Pool, []string, error) {
	pools, notes := map[string]fleet.Pool{}, []string(nil)
	if _, ok := p.Pools[defaultPool]; !ok {
		return nil, nil, errors.New("replay: there is no pool " + defaultPool)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Pools)) {
		pool := p.Pools[name].Pool
		pool.Policy.ForgetAfter = forgetAfter
		if pool.Policy.Reset == statement.LevelRootVolume {
			notes = append(notes, fmt.Sprintf("Pool %s renews the root volumes of its hosts: here a clean-up takes as long as any other.", name))
			pool.Policy.Reset = statement.LevelSlate
		}
		if len(pool.Caches) > 0 {
			notes = append(notes, fmt.Sprintf("Pool %s has caches: here jobs take as long as they did, and hosts are claimed in the order of the pool.", name))
			pool.Caches, pool.Policy.DockerCache = nil, ""
		}
		if n := p.Pools[name].Registered; n > 0 {
			notes = append(notes, fmt.Sprintf("Pool %s has %s wait registered (registered_minimum): none does here, so its jobs wait longer, and it costs less.",
				name, plural.Of(n, "host", "hosts")))
		}
		if slices.Contains(pool.UsageClasses, lifecycle.UsageSpot) && p.Pools[name].Spec.UsageClass == lifecycle.UsageSpot {
			notes = append(notes, fmt.Sprintf("Pool %s has spot hosts: here EC2 takes none back, and there is always capacity.", name))
		}
		pools[name] = pool
	}
	return pools, notes, nil
}

// labels are those of the job pools.
func (p Policy) labels() map[string]policy.PoolLabels {
	labels := map[string]policy.PoolLabels{}
	for name, pool := range p.Pools {
		if pool.Labels != nil {
			labels[name] = policy.PoolLabels{Own: pool.Labels, Default: pool.DefaultLabels}
		}
	}
	return labels
}

// defaultPool is the pool of a job that no job pool serves.
const defaultPool = "default"

// PoolOf returns the pool that serves a job: a job pool with its labels that its repository may use, or the default pool.
func (p Policy) PoolOf() func(history.Job) Pool {
	labels := p.labels()
	return func(j history.Job) Pool {
		if name, ok := policy.MatchPool(labels, j.Labels); ok && policy.ServesRepository(p.Pools[name].Repositories, j.Repository) {
			return p.Pools[name]
		}
		return p.Pools[defaultPool]
	}
}

// DollarsAnHour is what an hour of a machine costs for the jobs of a pool; 0: it is not known.
func (p Policy) DollarsAnHour(pool string) float64 {
	order := orderOf(p.Pools[pool], p.Classes)
	t, err := newCloud(p, func() time.Time { return time.Time{} }).typeFor(order)
	if err != nil {
		return 0
	}
	dollars, _, _ := p.Prices.Of(t.Name, string(order.UsageClass))
	return dollars
}

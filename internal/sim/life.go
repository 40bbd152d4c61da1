package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/rules"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// life is one life of a fleet: the replicas of controld, the callers, the workers of a service,
// the operators and the faults, in a world that the rules watch.
type life struct {
	*world.World
	rules *rules.Watcher

	replicas []*replica
	starts   int             // of replicas
	warm     *fleet.WarmPool // nil: no pool has warm hosts
	// freshStopped: nil: no pool launches hosts to have them stopped.
	freshStopped *fleet.WarmPool
	labels       int // of hosts in standby, so far
	workload     workload
	script       *script // of a story; else nil
}

func newLife(c engine.Config) *life {
	l := &life{World: world.New(c)}
	l.rules = rules.New(l.World)
	l.OnTask = l.beginWorker
	l.configure()
	return l
}

var classes = map[string]fleet.Class{
	"small": {CPU: 2, MemoryMiB: 4096},
	"large": {CPU: 4, MemoryMiB: 8192},
}

// configure draws the configuration of this life.
func (l *life) configure() {
	pick := func(d ...time.Duration) time.Duration { return d[l.Rand.IntN(len(d))] }
	runtime := pick(10*time.Minute, 15*time.Minute, 25*time.Minute)
	pool := func(name string, reuse lifecycle.Reuse, maxUses int) fleet.Pool {
		p := lifecycle.DefaultPolicy()
		p.MaxRuntime, p.Reuse, p.MaxUses = runtime, reuse, maxUses
		p.IdleTime = pick(time.Minute, 5*time.Minute)
		return fleet.Pool{
			Name: name, ResourceClasses: []string{"small", "large"}, UsageClasses: lifecycle.UsageClasses, Policy: p,
		}
	}
	l.workload = l.drawWorkload()
	l.Pools = map[string]fleet.Pool{
		"default": pool("default", lifecycle.ReuseSameRepository, 0),
		"owner":   pool("owner", lifecycle.ReuseSameOwner, 3),
		"once":    pool("once", lifecycle.ReuseNone, 0),
	}
	if l.overtaking() {
		l.reuseMore()
	}
	if l.Config.Seed%4 == 1 {
		l.warmUp()
	}
	l.limitHosts()
	l.Intervals = agent.Intervals{
		ReadIdle: pick(500*time.Millisecond, 2*time.Second), ReadStandby: 2 * time.Second, ReadRunning: 5 * time.Second, Heartbeat: 15 * time.Second,
	}
	l.heat()
	l.calmDown()
	l.keepCaches()
	l.stopIdle()
	l.resetRoots()
	l.poolJobs()
	l.keepImages()
	l.Pausing = l.pausing()
	l.Metering = l.Config.Seed%meteringLives == 5
}

// meteringLives: in every ninth life the readings of hosts' time meet the faults of the store.
const meteringLives = 9

// launchRate is so low in some lives that most launches are gathered.
func (l *life) launchRate() fleet.Rate {
	if l.script != nil || l.Config.Seed%3 != 2 {
		return fleet.Rate{}
	}
	return fleet.Rate{PerSecond: 0.1, Burst: 1}
}

// warmUp gives two pools warm hosts, until the faults end.
func (l *life) warmUp() {
	l.warm = &fleet.WarmPool{
		Spec:   lifecycle.Spec{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"}},
		Policy: policy.WarmPolicy{MinimumIdle: 1 + l.Rand.IntN(2), Lead: time.Minute},
	}
	for _, name := range []string{"default", "once"} {
		p := l.Pools[name]
		p.Warm, p.Policy.WarmTime = l.warm, 15*time.Minute
		l.Pools[name] = p
	}
}

// begin starts the replicas, the callers and the faults.
func (l *life) begin() {
	for i := range 2 + l.Rand.IntN(2) {
		l.replicas = append(l.replicas, l.newReplica(i))
	}
	l.beginCallers()
	l.scheduleFaults()
	l.beginSubmitters()
	l.beginPoolJobs()
	l.rules.Begin()
}

// endChaos ends all faults: from here on everything has to settle.
func (l *life) endChaos() {
	if l.warm != nil {
		l.warm.Policy.MinimumIdle = 0
	}
	if l.freshStopped != nil {
		l.freshStopped.Policy.MinimumIdle = 0
	}
	l.endPoolJobs()
	if l.losing() {
		l.After(endUnrecordedAfter, l.EndUnrecorded)
	}
	l.rightClocks()
	l.Calm()
	l.resumeAll()
}

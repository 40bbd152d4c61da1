package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	compute "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// world is everything that exists in one life.
type world struct {
	cfg Config
	rng *rand.Rand

	now   time.Time
	heap  eventHeap
	seq   uint64
	depth int // of suspended actors

	current *actor
	chaos   bool
	odds    map[Fault]float64

	truth *store.Store
	lag   *lag
	queue *queue.Queue
	// notices are what EC2 announced and no replica has acknowledged; announced counts all.
	notices   []lifecycle.NoticeDelivery
	announced int

	compute        *compute.Compute
	machines       map[string]*machine
	machineIDs     []string
	cloudAwayUntil time.Time
	storeAwayUntil time.Time

	github    *githubWorld
	replicas  []*replica
	starts    int // of replicas
	leaked    int // machines without a record, so far
	pools     map[string]fleet.Pool
	intervals agent.Intervals
	warm      *fleet.WarmPool // nil: no pool has warm hosts
	limits    policy.Limits
	ecs       ecs
	work      workWorld
	workload  workload
	runs      []*run
	rules     *rules

	// script is set in a story, which has no chance; storyBegan is when its clock begins.
	script     *script
	storyBegan time.Time

	trace     *trace
	coverage  Coverage
	violation *Violation
	events    int
	calls     int
}

// repositories are the repositories of the callers: two owners, one of them with two.
var repositories = []string{"acme/app", "acme/lib", "umbrella/app"}

var classes = map[string]fleet.Class{
	"small": {CPU: 2, MemoryMiB: 4096},
	"large": {CPU: 4, MemoryMiB: 8192},
}

func newWorld(c Config) *world {
	w := &world{
		cfg: c, rng: rand.New(rand.NewPCG(c.Seed, 0x72656d756461)), now: epoch, chaos: true,
		machines: map[string]*machine{}, trace: newTrace(c.Keep), coverage: newCoverage(),
	}
	w.drawFaultRates()
	w.truth = store.New(w.clock)
	w.lag = newLag(w)
	w.queue = queue.New(w.clock)
	w.compute = must1(compute.New(compute.Options{
		Limits: placement.Limits{Arch: catalogue.ArchX86, Zones: []string{"a", "b"}}, Now: w.clock, SlowEnd: true,
	}))
	w.github = &githubWorld{w: w, tokens: map[lifecycle.Secret]token{}}
	w.rules = newRules()
	w.work = workWorld{claimedAt: map[string]time.Time{}, had: map[string]string{}, waitsSince: map[string]time.Time{}}
	w.configure()
	return w
}

func (w *world) clock() time.Time { return w.now }

// configure draws the configuration of this life.
func (w *world) configure() {
	pick := func(d ...time.Duration) time.Duration { return d[w.rng.IntN(len(d))] }
	runtime := pick(10*time.Minute, 15*time.Minute, 25*time.Minute)
	pool := func(name string, reuse lifecycle.Reuse, maxUses int) fleet.Pool {
		p := lifecycle.DefaultPolicy()
		p.MaxRuntime, p.Reuse, p.MaxUses = runtime, reuse, maxUses
		p.IdleTime = pick(time.Minute, 5*time.Minute)
		return fleet.Pool{
			Name: name, ResourceClasses: []string{"small", "large"}, UsageClasses: lifecycle.UsageClasses, Policy: p,
		}
	}
	w.workload = w.drawWorkload()
	w.pools = map[string]fleet.Pool{
		"default": pool("default", lifecycle.ReuseSameRepository, 0),
		"owner":   pool("owner", lifecycle.ReuseSameOwner, 3),
		"once":    pool("once", lifecycle.ReuseNone, 0),
	}
	if w.cfg.Seed%4 == 1 {
		w.warmUp()
	}
	w.limitHosts()
	w.intervals = agent.Intervals{
		ReadIdle: pick(500*time.Millisecond, 2*time.Second), ReadRunning: 5 * time.Second, Heartbeat: 15 * time.Second,
	}
}

// warmUp gives two pools warm hosts, until the faults end.
func (w *world) warmUp() {
	w.warm = &fleet.WarmPool{
		Spec:   lifecycle.Spec{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"}},
		Policy: policy.WarmPolicy{MinimumIdle: 1 + w.rng.IntN(2), Lead: time.Minute},
	}
	for _, name := range []string{"default", "once"} {
		p := w.pools[name]
		p.Warm, p.Policy.WarmTime = w.warm, 15*time.Minute
		w.pools[name] = p
	}
}

// begin starts the replicas, the callers and the faults.
func (w *world) begin() {
	for i := range 2 + w.rng.IntN(2) {
		w.replicas = append(w.replicas, w.newReplica(i))
	}
	w.beginCallers()
	w.scheduleFaults()
	w.beginSubmitters()
	w.beginRules()
}

func (w *world) storeAway() bool { return w.now.Before(w.storeAwayUntil) }

// endChaos ends all faults: from here on everything has to settle.
func (w *world) endChaos() {
	w.tell("world", "calm", "")
	w.chaos = false
	if w.warm != nil {
		w.warm.Policy.MinimumIdle = 0
	}
	w.storeAwayUntil, w.cloudAwayUntil, w.github.away = w.now, w.now, w.now
	for _, m := range w.living() {
		if m.host != nil {
			m.host.cutOff = w.now
		}
	}
	w.endShortage()
	w.github.assign()
	w.rules.chaosEndedAt = w.now
}

// logger writes what a daemon logs into the trace, if Config.Log is set.
func (w *world) logger(name string) hclog.Logger {
	if !w.cfg.Log {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: name, Level: hclog.Debug, DisableTime: true, Output: logWriter{w, name},
	})
}

type logWriter struct {
	w    *world
	name string
}

func (l logWriter) Write(p []byte) (int, error) {
	l.w.tell(l.name, "log", strings.TrimSpace(string(p)))
	return len(p), nil
}

func short(id string) string {
	if len(id) > 6 {
		return id[:6]
	}
	return id
}

func recordLine(r lifecycle.Record) string {
	return fmt.Sprintf("v%d %s a%d run %q request %q threshold %s due %s: %s", r.Version, r.Condition(), r.Assignment,
		r.RunID, r.RequestID, sinceEpoch(r.Threshold), sinceEpoch(r.DueAt), r.Reason)
}

func sinceEpoch(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(epoch).Truncate(time.Millisecond).String()
}

package world

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	compute "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/policy"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// World is everything that exists in one life: the store, the queue, the cloud, GitHub and the
// hosts, as they really are.
type World struct {
	*engine.Engine

	// Truth is the store as it is, lag as late reads show it.
	Truth *store.Store
	lag   *lag
	kept  []*store.Store // the backups, the oldest first
	// reading counts the reads of a host's record that are under way.
	reading map[string]int
	queue   *queue.Queue
	// notices are what EC2 announced and no replica has acknowledged; announced counts all.
	notices   []notice.Delivery
	announced int

	Compute    *compute.Compute
	Machines   map[string]*Machine
	machineIDs []string
	leaked     int // machines without a record, so far
	GitHub     *GitHub
	// Hot: some pool has hosts that listen before a run claims them.
	Hot bool
	// Pausing: operators pause pools.
	Pausing bool
	// Caching: hosts keep caches.
	Caching bool
	// Metering: the faults of the store meet the readings of hosts' time, too.
	Metering bool
	ECS      ECS
	// StoreAwayUntil and CloudAwayUntil are when the store and the cloud answer again.
	StoreAwayUntil, CloudAwayUntil time.Time
	// CloudBlindUntil is until when the cloud answers and shows no machine.
	CloudBlindUntil time.Time
	// ReportsAwayUntil is when the store takes reports again: until then all hosts are silent.
	ReportsAwayUntil time.Time
	// CalmSince is when the faults ended; zero: they have not.
	CalmSince time.Time

	// Pools, Limits and Intervals configure the fleet and its agents.
	Pools     map[string]ports.Pool
	JobPools  map[string]ports.JobPool // by the name of their pool
	Limits    policy.Limits
	Intervals agent.Intervals

	// Runs are the workflow runs that callers asked hosts for, WorkIDs the ids of the service's
	// jobs, both in order.
	Runs    []Run
	WorkIDs []string
	// OnTask is called when a container of the service begins to run.
	OnTask func(*Task)

	observers []func(event any)
}

// Run is a workflow run.
type Run struct{ Repository, ID string }

// Repositories are the repositories of the callers: two owners, one of them with two.
var Repositories = []string{"acme/app", "acme/lib", "umbrella/app"}

// New returns a world without a fleet.
func New(c engine.Config) *World {
	w := &World{Engine: engine.New(c), Machines: map[string]*Machine{}, reading: map[string]int{}}
	w.Truth = store.New(w.Clock)
	w.lag = newLag(w)
	w.queue = queue.New(w.Clock)
	w.Compute = engine.Must1(compute.New(compute.Options{
		Limits: placement.Limits{Arch: catalogue.ArchX86, Zones: []string{"a", "b"}}, Now: w.Clock, SlowEnd: true,
	}))
	w.GitHub = &GitHub{w: w, tokens: map[lifecycle.Secret]token{}, registering: map[string]int{}}
	return w
}

// Calm ends all faults for the rest of the life.
func (w *World) Calm() {
	w.Tell("world", "calm", "")
	w.Chaos = false
	w.EndStorms()
	w.CalmSince = w.Now
}

// EndStorms ends what is away or short, and the faults that come at random times. Single calls go on failing.
func (w *World) EndStorms() {
	w.Storms = false
	w.StoreAwayUntil, w.CloudAwayUntil, w.CloudBlindUntil, w.GitHub.Away, w.ReportsAwayUntil = w.Now, w.Now, w.Now, w.Now, w.Now
	for _, m := range w.Living() {
		if m.Host != nil {
			m.Host.CutOff = w.Now
		}
	}
	w.EndShortage()
	w.GitHub.Assign()
}

// Observe has f called with each event of the world, one of the types in events.go.
func (w *World) Observe(f func(event any)) { w.observers = append(w.observers, f) }

func (w *World) emit(event any) {
	for _, f := range w.observers {
		f(event)
	}
}

// called emits Called.
func (w *World) called(what string, err error) { w.emit(Called{what, err}) }

// StoreAway reports whether the store does not answer now.
func (w *World) StoreAway() bool { return w.Now.Before(w.StoreAwayUntil) }

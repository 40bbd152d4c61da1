// Package fleet holds the use-cases of controld: Provision, Release, Refresh,
// the sweeps, and the orders and questions of operators.
//
// Each is an Op: a sequence of small steps, each of which reads, decides and
// does one effect, with its progress in the store. A daemon loops over the
// steps, the simulator takes them one at a time, and a crash between any two
// is finished by the next sweep. Nothing that matters is kept in memory.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
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

// Observer hears what is worth measuring.
type Observer interface {
	// Claimed: a request had its hosts from the pool, d after it began.
	Claimed(d time.Duration)
	// Registered: a host was ready, d after it was claimed or launched.
	Registered(d time.Duration)
	// Released: a host was pooled, d after its release.
	Released(d time.Duration)
	// Swept: a sweep ended after d, with err or well.
	Swept(sweep string, d time.Duration, err error)
	// RunnersEnd: when the versions of actions/runner that hosts have get no
	// jobs any more, as far as that is known.
	RunnersEnd(at map[string]time.Time)
}

type silentObserver struct{}

func (silentObserver) Claimed(time.Duration)              {}
func (silentObserver) Registered(time.Duration)           {}
func (silentObserver) Released(time.Duration)             {}
func (silentObserver) Swept(string, time.Duration, error) {}
func (silentObserver) RunnersEnd(map[string]time.Time)    {}

// Options are the parts that a Fleet is made of. Store, Queue, Compute, GitHub
// and Pools are required.
type Options struct {
	Store   Store
	Queue   Queue
	Compute Compute
	GitHub  GitHub

	Pools   map[string]Pool
	Classes map[string]Class
	// Sells reports whether the cloud has an instance type, free or not, that
	// satisfies a class and matches each of the lists of patterns (an empty
	// list: all). nil where only a launch tells.
	Sells func(c Class, patterns ...[]string) bool
	// TemplateVersion is the version of what the hosts of a pool are launched
	// from. A launch names it, so that a repeat is the same launch; nil: there
	// are no versions.
	TemplateVersion func(ctx context.Context, pool string) (string, error)
	// Exhausted are the offerings of a usage class that were short of capacity a
	// short while ago: a launch leaves them out. nil: none are known.
	Exhausted func(usage lifecycle.UsageClass) []lifecycle.Offering
	// Ensure is what a refresh does first; nil: nothing.
	Ensure Ensure
	// Guards keeps the fleet's hold, its breakers and limits; nil: there are none.
	Guards GuardStore
	// Limits bound the hosts of each repository and owner. They need Guards.
	Limits policy.Limits
	// Jobs are the parts for webhooks and job pools; nil: there are none.
	Jobs *JobOptions
	// Workers are the job queues of services; nil: there are none.
	Workers *workqueue.Options
	// Services are the services of runners; nil: there are none.
	Services *services.Options
	// Notices tells what EC2 announces of machines; nil: nobody listens.
	Notices Notices
	// Releases lists the releases of actions/runner; nil: nobody asks how old
	// the runners of the hosts are.
	Releases func(ctx context.Context) ([]policy.Release, error)
	// Repositories are those whose registrations the GitHub sweep goes through
	// for ghosts. Each host's own registration is removed without it.
	Repositories []string

	// ScaleDown has idle hosts ended, and such as GitHub does not know; nil:
	// nobody does.
	ScaleDown *ScaleDown

	// Replica names this process in leases; it must be unique.
	Replica string
	// HostKey makes a host key of an instance id; nil: they are the same.
	HostKey  func(instanceID string) string
	Rand     *rand.Rand
	Log      hclog.Logger
	Observer Observer
	Timing   Timing
}

// Timing holds the intervals of the use-cases. The zero value of a field means
// its default.
type Timing struct {
	// Poll is how often a waiting operation reads the reports it waits for.
	Poll time.Duration
	// Takeover is how long a request may stand still before a sweep goes on
	// with it. An operation that is alive renews it at half that time.
	Takeover time.Duration
	// Relaunch is how long a request that was short of capacity waits before
	// it looks again.
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

func (t Timing) withDefaults() Timing {
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

// Fleet is the use-cases over one set of ports. It is safe for concurrent use.
type Fleet struct {
	store   Store
	queue   Queue
	compute machines
	ender   ender
	github  GitHub
	guards  GuardStore
	limits  policy.Limits

	pools        map[string]Pool
	classes      map[string]Class
	sells        func(Class, ...[]string) bool
	templates    templates
	exhausted    func(lifecycle.UsageClass) []lifecycle.Offering
	ensure       Ensure
	repositories []string
	jobs         *jobDesk
	services     *services.Services
	work         *workqueue.Queue
	scaleDown    *ScaleDown
	replica      string
	hostKey      func(string) string
	log          hclog.Logger
	ops          *op.Driver
	observer     Observer
	timing       Timing

	notices Notices
	// sweeping: this replica holds the lease of the sweeps.
	sweeping atomic.Bool

	watch    watch
	hub      githubWatch
	releases func(context.Context) ([]policy.Release, error)
	versions versions
	// malformed has the keys of the hosts whose report was last malformed.
	malformed sync.Map
}

// New checks the options and returns a Fleet.
func New(o Options) (*Fleet, error) {
	if o.Store == nil || o.Queue == nil || o.Compute == nil || o.GitHub == nil {
		return nil, errors.New("new fleet: store, queue, compute and github are required")
	}
	if o.ScaleDown != nil && o.ScaleDown.GitHub == nil {
		return nil, errors.New("new fleet: scale-down needs to ask GitHub for registrations")
	}
	if o.Limits.On() && o.Guards == nil {
		return nil, errors.New("new fleet: limits on hosts need a store of guards")
	}
	if len(o.Pools) == 0 {
		return nil, errors.New("new fleet: at least one pool is required")
	}
	if o.Replica == "" {
		return nil, errors.New("new fleet: the replica needs a name")
	}
	for name, pool := range o.Pools {
		for _, class := range pool.ResourceClasses {
			if _, ok := o.Classes[class]; !ok {
				return nil, fmt.Errorf("new fleet: pool %s: resource class %s is not defined", name, class)
			}
		}
	}
	f := &Fleet{
		store: o.Store, queue: o.Queue, compute: o.Compute, ender: o.Compute, github: o.GitHub, guards: o.Guards, limits: o.Limits,
		pools: o.Pools, classes: o.Classes, sells: o.Sells, templates: templates{ask: o.TemplateVersion}, exhausted: o.Exhausted, ensure: o.Ensure, repositories: o.Repositories,
		replica: o.Replica, hostKey: o.HostKey, log: o.Log, observer: o.Observer,
		timing: o.Timing.withDefaults(), releases: o.Releases, notices: o.Notices, scaleDown: o.ScaleDown,
	}
	if o.Jobs != nil {
		desk, err := newJobDesk(*o.Jobs, o.Pools)
		if err != nil {
			return nil, fmt.Errorf("new fleet: %w", err)
		}
		desk.GitHub = watchedJobs{desk.GitHub, &f.hub}
		f.jobs = desk
	}
	f.github = watchedGitHub{f.github, &f.hub}
	if f.hostKey == nil {
		f.hostKey = func(id string) string { return id }
	}
	if f.exhausted == nil {
		f.exhausted = func(lifecycle.UsageClass) []lifecycle.Offering { return nil }
	}
	if f.log == nil {
		f.log = hclog.NewNullLogger()
	}
	if f.observer == nil {
		f.observer = silentObserver{}
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	f.ops = op.NewDriver(f.store, f.log, o.Rand, f.hub.step)
	if err := f.setServices(o); err != nil {
		return nil, fmt.Errorf("new fleet: %w", err)
	}
	return f, nil
}

// policy is that of the host's pool. A pool that is no longer configured keeps
// the default numbers, and its hosts are not reused.
func (f *Fleet) policy(pool string) lifecycle.Policy {
	if p, ok := f.pools[pool]; ok {
		return p.Policy
	}
	p := lifecycle.DefaultPolicy()
	p.Reuse = lifecycle.ReuseNone
	return p
}

// Op is an operation in small steps; see package op.
type Op = op.Op

// Progress is how far a step has brought its operation.
type Progress = op.Progress

// Decided is a decision on one host, for people.
type Decided = op.Decided

// CutError says that an operation was cut short while a dependency was
// unavailable.
type CutError = op.CutError

// Drive steps an operation until it is done, fails, or ctx ends; see op.Driver.
func (f *Fleet) Drive(ctx context.Context, o Op, patience time.Duration) error {
	return f.ops.Drive(ctx, o, patience)
}

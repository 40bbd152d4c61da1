// Package fleet is the root of the use-cases of controld: it makes their rooms of one set of ports, registers
// what they do for each other, and has the table of sweeps, Refresh, and the names that callers use.
//
// Each use-case is made of operations in small steps; see package op. The rooms, from the
// bottom: ports (interfaces and settings), op (operations), hosts (one host), quota (limits),
// provision (requests and releases); above them sweeps, scaledown, warm, jobs and explain.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/checks"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	"github.com/remuda-ci/remuda/internal/fleet/explain"
	"github.com/remuda-ci/remuda/internal/fleet/gather"
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/jobs"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/fleet/warm"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// Options are the parts that a Fleet is made of. Store, Queue, Compute, GitHub and Pools are required.
type Options struct {
	Store   ports.Store
	Queue   ports.Queue
	Compute ports.Compute
	GitHub  ports.GitHub
	// Sources says what runs were started by, for the caches of pools; nil: no run may write to one.
	Sources ports.GitHubSources

	Pools   map[string]ports.Pool
	Classes map[string]ports.Class
	// Sells reports whether the cloud has an instance type, free or not, that satisfies a class and matches
	// each of the lists of patterns (an empty list: all). nil where only a launch tells.
	Sells func(c ports.Class, patterns ...[]string) bool
	// Outside says why no type that the request of an order allows is within the bounds of its pool, and what the pool allows;
	// empty: some may be. nil: the bounds are those of the lists of patterns.
	Outside func(o lifecycle.LaunchOrder) (why string)
	// TemplateVersion is the version of what the hosts of a pool are launched from. A launch names it, so
	// that a repeat is the same launch; nil: there are no versions.
	TemplateVersion func(ctx context.Context, pool string) (string, error)
	// Exhausted are the offerings of a usage class that were short of capacity a
	// short while ago: a launch leaves them out. nil: none are known.
	Exhausted func(usage lifecycle.UsageClass) []lifecycle.Offering
	// LaunchRate is at what rate this replica may launch: launches that would exceed it are gathered into few calls. Zero: each has
	// a call of its own.
	LaunchRate ports.Rate
	// Ensure is what a refresh does first; nil: nothing.
	Ensure Ensure
	// Guards keeps the fleet's hold, its breakers and limits; nil: there are none.
	Guards ports.GuardStore
	// Limits bound the hosts of each repository and owner. They need Guards.
	Limits policy.Limits
	// Budgets bound what the runs of repositories and owners may cost in a month. They need Prices and Guards.
	Budgets budget.List
	// Jobs are the parts for webhooks and job pools; nil: there are none.
	Jobs *jobs.Options
	// Workers are the job queues of services; nil: there are none.
	Workers *workqueue.Options
	// Services are the services of runners; nil: there are none.
	Services *services.Options
	// Notices are what EC2 announces of machines; nil: nothing is received.
	Notices ports.Notices
	// Releases lists the releases of actions/runner; nil: the age of runners is not checked.
	Releases func(ctx context.Context) ([]runnerage.Release, error)
	// Repositories are those whose registrations the GitHub sweep goes through
	// for ghosts. Each host's own registration is removed without it.
	Repositories []string

	// Prices are what an hour of a machine costs; nil: the time of hosts is not summed up, and cannot be asked for.
	Prices *price.List

	// CallsMade counts the calls to AWS of this process, since it began; nil: it makes none. They are kept if there are prices.
	CallsMade func() []meter.Calls

	// ScaleDown ends idle hosts, and hosts that GitHub does not know; nil: it is off.
	ScaleDown *scaledown.Options

	// Checks writes check runs on commits whose jobs wait; nil: it is off.
	Checks *checks.Options

	// Replica names this process in leases; it must be unique.
	Replica string
	// HostKey makes a host key of an instance id; nil: they are the same.
	HostKey func(instanceID string) string
	// RandomText makes the labels of hosts that listen ahead of need; nil: crypto/rand's.
	RandomText func() string
	// ClockOffset is how far the store's clock is from that of this machine; nil: they are the same.
	ClockOffset func() time.Duration
	// Tracer follows operations; nil: nothing does.
	Tracer op.Tracer
	// AtOnce is on how many hosts an operation works at once; 0: 10. With 1 each step has one effect at most, and all calls are made on the
	// caller's goroutine, so a simulation of them can be repeated.
	AtOnce int

	Rand     *rand.Rand
	Log      hclog.Logger
	Observer ports.Observer
	Timing   ports.Timing
}

// Fleet is the use-cases over one set of ports. It is safe for concurrent use.
type Fleet struct {
	hosts     *hosts.Hosts
	quota     *quota.Ledger
	provision *provision.Provisioner
	sweeps    *sweeps.Sweeps
	scaledown *scaledown.Scaler
	warm      *warm.Pools
	jobs      *jobs.Jobs // nil: there are no job pools
	explain   *explain.Explainer
	costs     *costs.Costs   // nil: there are no prices
	keeper    *costs.Keeper  // nil: no calls to AWS are kept
	budgets   *costs.Budgets // nil: there are none
	checks    *checks.Checks // nil: none are written

	store     ports.Store
	pools     map[string]ports.Pool
	ensure    Ensure
	scaleDown *scaledown.Options
	services  *services.Services
	work      *workqueue.Queue
	log       hclog.Logger
	ops       *op.Driver
	observer  ports.Observer
	timing    ports.Timing
}

// New checks the options and returns a Fleet.
func New(o Options) (*Fleet, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("new fleet: %w", err)
	}
	o.fill()
	health := &hosts.GitHubHealth{}
	f := &Fleet{
		store: o.Store, pools: o.Pools, ensure: o.Ensure, scaleDown: o.runningScaleDown(),
		log: o.Log, observer: o.Observer, timing: o.Timing,
		ops: op.NewDriver(o.Store, o.Log, o.Rand, health.Step, o.Observer.Decided),
	}
	f.ops.ClockOffset, f.ops.Tracer = o.ClockOffset, o.Tracer
	o.GitHub = health.Watch(o.GitHub)
	if o.Jobs != nil {
		j, err := jobs.New(*o.Jobs, o.Pools)
		if err != nil {
			return nil, fmt.Errorf("new fleet: %w", err)
		}
		j.Options.GitHub = health.WatchJobs(j.Options.GitHub)
		f.jobs = j
	}
	f.lowerRooms(o, health)
	f.upperRooms(o)
	if err := f.setServices(o); err != nil {
		return nil, fmt.Errorf("new fleet: %w", err)
	}
	if f.jobs != nil {
		f.jobs.OnJob, f.jobs.OnStart, f.jobs.OnUnserved = f.services.NudgeForJob, o.Observer.JobStarted, o.Observer.JobUnserved
	}
	return f, nil
}

func (o Options) check() error {
	switch {
	case o.Store == nil || o.Queue == nil || o.Compute == nil || o.GitHub == nil:
		return errors.New("store, queue, compute and github are required")
	case o.ScaleDown != nil && o.ScaleDown.GitHub == nil:
		return errors.New("scale-down needs to ask GitHub for registrations")
	case o.Limits.On() && o.Guards == nil:
		return errors.New("limits on hosts need a store of guards")
	case len(o.Budgets) > 0 && (o.Guards == nil || o.Prices == nil):
		return errors.New("budgets need prices, and a store of guards")
	case len(o.Pools) == 0:
		return errors.New("at least one pool is required")
	case o.Replica == "":
		return errors.New("the replica needs a name")
	}
	for name, pool := range o.Pools {
		for _, class := range pool.ResourceClasses {
			if _, ok := o.Classes[class]; !ok {
				return fmt.Errorf("pool %s: resource class %s is not defined", name, class)
			}
		}
	}
	return nil
}

// runningScaleDown is the scale-down that ends hosts; nil: there is none.
func (o Options) runningScaleDown() *scaledown.Options {
	if o.ScaleDown == nil || o.ScaleDown.PlanOnly {
		return nil
	}
	return o.ScaleDown
}

// fill fills in defaults.
func (o *Options) fill() {
	o.Timing = o.Timing.WithDefaults()
	if o.HostKey == nil {
		o.HostKey = func(id string) string { return id }
	}
	if o.Exhausted == nil {
		o.Exhausted = func(lifecycle.UsageClass) []lifecycle.Offering { return nil }
	}
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	o.Observer = cmp.Or[ports.Observer](o.Observer, ports.SilentObserver{})
	o.Rand = cmp.Or(o.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
}

// lowerRooms makes the rooms that act on single hosts, and provision.
func (f *Fleet) lowerRooms(o Options, health *hosts.GitHubHealth) {
	f.hosts = &hosts.Hosts{
		Store: o.Store, Queue: o.Queue, GitHub: o.GitHub, Sources: o.Sources, Guards: o.Guards, Compute: o.Compute, Ender: o.Compute,
		Pools: o.Pools, Prices: o.Prices, Limited: o.Limits.On(), HostKey: o.HostKey, RandomText: o.RandomText, AtOnce: cmp.Or(o.AtOnce, hosts.AtOnce), GitHubHealth: health,
		Templates: hosts.Templates{Ask: o.TemplateVersion}, Timing: o.Timing, Log: o.Log, Observer: o.Observer, Ops: f.ops,
	}
	f.quota = &quota.Ledger{
		Store: o.Store, Guards: o.Guards, Compute: o.Compute, Hosts: f.hosts, Limits: o.Limits, Pools: o.Pools, Timing: o.Timing, Log: o.Log, Ops: f.ops,
	}
	f.provision = &provision.Provisioner{
		Store: o.Store, Queue: o.Queue, Compute: o.Compute, GitHub: o.GitHub, Hosts: f.hosts, Quota: f.quota,
		Pools: o.Pools, Classes: o.Classes, Sells: o.Sells, Outside: o.Outside, Exhausted: o.Exhausted,
		Timing: o.Timing, Log: o.Log, Observer: o.Observer, Ops: f.ops,
	}
	f.provision.Batches = gather.New(o.LaunchRate, &gather.Batches{Store: o.Store, Compute: o.Compute, Timing: o.Timing, Log: o.Log, Ops: f.ops})
	f.hosts.After = []hosts.AfterFunc{f.quota.HostForgotten, f.quota.RunnerLost, f.quota.VersionRefused}
	if f.jobs != nil {
		f.hosts.JobStore, f.provision.GitHubJobs = f.jobs.Options.Store, f.jobs.Options.GitHub
		f.hosts.After = append(f.hosts.After, f.jobs.HandedBack)
	}
}

// upperRooms makes the rooms above those of lowerRooms.
func (f *Fleet) upperRooms(o Options) {
	if o.Prices != nil {
		f.costs = &costs.Costs{Store: o.Store, Prices: *o.Prices, Ops: f.ops, Calls: o.CallsMade != nil, Running: f.running}
	}
	if o.Prices != nil && o.CallsMade != nil {
		f.keeper = &costs.Keeper{Store: o.Store, Made: o.CallsMade, Replica: o.Replica, Log: o.Log.Named("calls")}
	}
	if len(o.Budgets) > 0 {
		f.budgets = &costs.Budgets{Costs: f.costs, List: o.Budgets, Lag: o.Timing.Budgets, Store: o.Guards, Log: o.Log}
		f.quota.Budget = f.budgets.Against
	}
	f.warm = &warm.Pools{
		Store: o.Store, Hosts: f.hosts, Quota: f.quota, Provision: f.provision, Pools: o.Pools, Exhausted: o.Exhausted,
		Timing: o.Timing, Log: o.Log, Ops: f.ops,
	}
	f.scaledown = &scaledown.Scaler{
		Store: o.Store, Compute: o.Compute, GitHub: o.GitHub, Hosts: f.hosts, Options: o.ScaleDown, Log: o.Log, Ops: f.ops,
	}
	f.sweeps = &sweeps.Sweeps{
		Store: o.Store, Compute: o.Compute, GitHub: o.GitHub, Hosts: f.hosts, Quota: f.quota, Resumer: f.resume,
		Notices: o.Notices, Releases: o.Releases, Repositories: o.Repositories, Pools: o.Pools, HostKey: o.HostKey,
		Replica: o.Replica, Timing: o.Timing, Log: o.Log, Observer: o.Observer, Ops: f.ops,
	}
	if o.Checks != nil {
		f.checks = &checks.Checks{Options: *o.Checks, Waiting: f.checkWaits, Ops: f.ops, Log: o.Log.Named("checks")}
		if f.jobs != nil {
			f.checks.Refusals = f.refusals
		}
	}
	f.explain = &explain.Explainer{
		Store: o.Store, GitHub: o.GitHub, Hosts: f.hosts, Scaledown: f.scaledown, Options: o.runningScaleDown(), Pools: o.Pools,
		PauseOf: f.quota.PauseOf, BudgetAgainst: f.quota.BudgetAgainst,
	}
	if j := f.jobs; j != nil {
		j.Store, j.Hosts, j.Provision, j.Pools, j.Repositories = o.Store, f.hosts, f.provision, o.Pools, o.Repositories
		j.Log, j.Ops = o.Log, f.ops
		f.scaledown.JobPools, f.sweeps.LostJobs = j.Options.Pools, j
		f.explain.JobStore, f.explain.JobPools, f.explain.JobURL = j.Options.Store, j.Options.Pools, j.Options.URL
	}
}

// resume goes on with a request that stood still.
func (f *Fleet) resume(q lifecycle.Request) op.Op {
	switch q.Kind {
	case lifecycle.RequestWarm, lifecycle.RequestStopped:
		return f.warm.NewClose(q)
	case lifecycle.RequestBatch:
		return f.provision.Batches.Resume(q)
	}
	return f.provision.Resume(q)
}

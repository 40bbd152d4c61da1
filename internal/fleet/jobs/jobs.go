// Package jobs provides hosts for jobs as GitHub announces them: it handles webhooks, reconciles job pools
// with their jobs, finds missed deliveries, and starts the failed jobs of an interrupted run again.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/unserved"
)

// Options are the parts for webhooks and job pools. Store and GitHub are required.
type Options struct {
	Store  ports.JobStore
	GitHub ports.GitHubJobs
	// Pools are the job pools, by the name of their pool.
	Pools map[string]ports.JobPool
	// Rules say whose runs get hosts when their jobs are queued.
	Rules policy.Rules
	// Scope returns the scope in which the hosts of a repository register as runners:
	// see lifecycle.Job.Scope. nil: the repository itself.
	Scope func(repository string) string
	// URL returns where people see a job; nil: nowhere.
	URL func(repository, runID string, jobID int64) string
	// Parse reads the body of a recovered delivery; nil: the fleet takes no webhooks,
	// and provides no hosts for jobs that they announce.
	Parse func(event, deliveryID string, body []byte, now time.Time) (lifecycle.Webhook, error)
}

// Jobs is what the use-cases of jobs share. Its exported fields are its parts: they are
// set before the first call and not changed after it. It is safe for concurrent use.
type Jobs struct {
	Options   Options
	Store     ports.Store
	Hosts     *hosts.Hosts
	Provision *provision.Provisioner
	Pools     map[string]ports.Pool
	// Repositories are those whose waiting jobs are listed where there are no missed deliveries to ask for.
	Repositories []string
	// OnStart is called with the pool of a job that a runner has taken, and how long the job waited for it; nil: nothing is.
	OnStart func(pool string, waited time.Duration)
	// OnUnserved is called with the reason for each queued job that gets no host; nil: nothing is.
	OnUnserved func(lifecycle.ReasonCode)
	// OnJob is called with the job of each webhook that TakeWebhook gets, whether the
	// fleet serves the job or not.
	OnJob func(lifecycle.WorkflowJob)
	Log   hclog.Logger
	Ops   *op.Driver

	labels   map[string]policy.PoolLabels // of the job pools, for policy.MatchPool
	unserved map[string]unserved.Pool     // the same, for unserved.Why

	mu sync.Mutex
	// start runs an operation in the background; nil: ServeJobs does not run here, and
	// the sweeps continue what is in the store.
	start func(what string, op op.Op)
	// reconciling has a key for each pool that is being reconciled in the background;
	// true: it is reconciled once more after that.
	reconciling map[string]bool
	// freed are the run ids, by pool, of the slots whose hosts were handed back and not
	// looked at since. looked is when all hosts of a pool were last looked at.
	freed  map[string][]string
	looked map[string]time.Time
	// behind are, by pool, the place in the line of jobs behind those at its head whose budget is used up in this month.
	behind map[string]placeInMonth
	// runPools are the pools of the jobs of runs.
	runPools runPools
	// noted is what keeps, or kept, jobs from hosts, by the job's id, as far as this replica has looked at them: a budget, or GitHub that does not answer.
	noted map[int64]lifecycle.Reason
	// forks remembers by lifecycle.RunKey whether a run's commit is a fork's. That never changes.
	forks    map[string]bool
	asking   singleflight.Group
	unknown  unknownRuns
	refusals refusals
	// recovered is the time up to which missed deliveries were recovered. The next
	// sweep asks for the later ones.
	recovered time.Time
}

// forksAtMost bounds the size of Jobs.forks. At the bound the map is emptied.
const forksAtMost = 4096

// New checks the options against the pools. The caller sets the other parts.
func New(o Options, pools map[string]ports.Pool) (*Jobs, error) {
	if o.Store == nil || o.GitHub == nil {
		return nil, errors.New("jobs: store and github are required")
	}
	if o.Scope == nil {
		o.Scope = func(repository string) string { return repository }
	}
	d := &Jobs{Options: o, labels: map[string]policy.PoolLabels{}, unserved: map[string]unserved.Pool{}, forks: map[string]bool{}, reconciling: map[string]bool{}, freed: map[string][]string{}, looked: map[string]time.Time{}, behind: map[string]placeInMonth{}, noted: map[int64]lifecycle.Reason{}}
	d.unknown = unknownRuns{map[string]time.Time{}, map[plannedMinute]int{}}
	for name, p := range o.Pools {
		pool, ok := pools[name]
		if !ok {
			return nil, fmt.Errorf("job pool %s: there is no pool of that name", name)
		}
		if p.Maximum < 1 || p.Minimum < 0 || p.Minimum > p.Maximum {
			return nil, fmt.Errorf("job pool %s: minimum %d and maximum %d do not fit", name, p.Minimum, p.Maximum)
		}
		d.labels[name] = policy.PoolLabels{Own: p.Labels, Default: pool.DefaultLabels}
		d.unserved[name] = unserved.Pool{PoolLabels: d.labels[name], Repositories: p.Repositories}
	}
	return d, nil
}

// submit runs an operation in the background, if ServeJobs runs. Otherwise the sweeps find it in the store.
func (js *Jobs) submit(what string, op op.Op) {
	js.mu.Lock()
	start := js.start
	js.mu.Unlock()
	if start != nil {
		start(what, op)
	}
}

// ofFork reports whether GitHub says that the commit of a run is a fork's. A run
// about which GitHub does not say counts as a fork's.
func (js *Jobs) ofFork(ctx context.Context, repository, runID string) (bool, error) {
	key := lifecycle.RunKey(repository, runID)
	js.mu.Lock()
	fork, known := js.forks[key]
	js.mu.Unlock()
	if known {
		return fork, nil
	}
	// The jobs of a run are queued together, so one call answers for all of them.
	answer, err, _ := js.asking.Do(key, func() (any, error) {
		run, err := js.Options.GitHub.WorkflowRun(context.WithoutCancel(ctx), repository, runID)
		return forkOf(run) != policy.ForkNo, err
	})
	if err != nil {
		return false, fmt.Errorf("ask GitHub about run %s of %s: %w", runID, repository, err)
	}
	fork = answer.(bool)
	js.mu.Lock()
	defer js.mu.Unlock()
	if len(js.forks) >= forksAtMost {
		clear(js.forks)
	}
	js.forks[key] = fork
	return fork, nil
}

// forkOf reports whether a run's commit is a fork's, from the run's repository ids.
func forkOf(run lifecycle.WorkflowRun) policy.Fork {
	switch {
	case run.HeadRepositoryID == 0 || run.RepositoryID == 0:
		return policy.ForkUnknown
	case run.HeadRepositoryID != run.RepositoryID:
		return policy.ForkYes
	}
	return policy.ForkNo
}

// Fork asks GitHub whether the commit of a run is a fork's. It is
// policy.ForkUnknown for a run that GitHub does not know.
func (js *Jobs) Fork(ctx context.Context, repository, runID string) (policy.Fork, error) {
	fork, err := js.ofFork(ctx, repository, runID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return policy.ForkUnknown, nil
	case err != nil:
		return policy.ForkUnknown, err
	case fork:
		return policy.ForkYes, nil
	}
	return policy.ForkNo, nil
}

const (
	// backgroundPatience is how long an operation in the background keeps trying
	// while a service is unavailable. After that a sweep continues it.
	backgroundPatience = time.Minute
	// backgroundAtOnce is the most operations that run in the background at a time.
	// Those of a pool's slots last longest, and there is one for each host.
	backgroundAtOnce = 1024
)

// ServeJobs works on webhooks and slots as they come, until ctx ends. Work that is cut short then, or for
// which there is no place, is in the store, and the sweeps of any replica continue it.
func (js *Jobs) ServeJobs(ctx context.Context) {
	b := &background{env: js, places: make(chan struct{}, backgroundAtOnce)}
	js.serve(func(what string, op op.Op) {
		if !b.start(ctx, what, op) {
			js.Log.Warn("background operation not started; the sweeps go on with it", logkey.Op, what)
			givenUp(op)
		}
	})
	<-ctx.Done()
	js.serve(nil)
	b.stop()
}

// ServeJobsWith is ServeJobs for a simulator, which runs operations in its own time: start
// begins one in the background and does not wait for it.
func (js *Jobs) ServeJobsWith(start func(what string, o op.Op)) { js.serve(start) }

// background runs operations without their callers waiting for them. It is bounded by places.
type background struct {
	env    *Jobs
	places chan struct{}

	mu      sync.Mutex
	running sync.WaitGroup
	stopped bool
}

// start runs an operation if there is a place for it, and reports whether it does.
// After stop it starts none: a caller may have read js.start before it was unset.
func (b *background) start(ctx context.Context, what string, op op.Op) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	select {
	case b.places <- struct{}{}:
	default:
		return false
	}
	b.running.Go(func() {
		defer func() { <-b.places }()
		defer givenUp(op)
		err := b.env.Ops.Drive(ctx, op, backgroundPatience)
		if err != nil && ctx.Err() == nil {
			b.env.logBackground(what, err)
		}
	})
	return true
}

// stop waits for the running operations, and keeps others from starting.
func (b *background) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.running.Wait()
}

// givenUp notifies a coalesced operation that it is not stepped any more. Other operations need no notice.
func givenUp(op op.Op) {
	if o, ok := op.(*coalesced); ok {
		o.ended()
	}
}

// logBackground logs how an operation in the background failed. A request that came out short or was released
// is logged as information only: it has its own events.
func (js *Jobs) logBackground(what string, err error) {
	var short *provision.ShortError
	var released *provision.ReleasedError
	switch {
	case errors.As(err, &short), errors.As(err, &released):
		js.Log.Info("background request got no hosts", logkey.Op, what, logkey.Reason, err)
	case errors.Is(err, lifecycle.ErrUnavailable):
		js.Log.Warn("background operation deferred to the sweeps", logkey.Op, what, logkey.Error, err)
	default:
		js.Log.Error("background operation failed; the sweeps go on with it", logkey.Op, what, logkey.Error, err)
	}
}

func (js *Jobs) serve(start func(string, op.Op)) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.start = start
}

// enqueuePool reconciles a pool in the background, if ServeJobs runs. Calls during
// a reconciliation are coalesced: it runs once more, however many they are.
func (js *Jobs) enqueuePool(pool string) {
	js.mu.Lock()
	_, running := js.reconciling[pool]
	start := js.start
	if running || start == nil {
		if running {
			js.reconciling[pool] = true
		}
		js.mu.Unlock()
		return
	}
	js.reconciling[pool] = false
	js.mu.Unlock()
	start("balance of "+pool, &coalesced{env: js, pool: pool, reconcile: js.newReconcilePool(pool)})
}

// coalesced reconciles a pool, and repeats that for as long as it was asked for
// again during the last reconciliation.
type coalesced struct {
	env       *Jobs
	pool      string
	reconcile *reconcilePool
	over      bool
}

// Subject implements op.Described.
func (o *coalesced) Subject() op.Subject {
	return op.Subject{Name: "balance of a job pool", Pool: o.pool}
}

func (o *coalesced) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.reconcile.Step(ctx, now)
	if err == nil && !progress.Done {
		return progress, nil
	}
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	switch {
	case err != nil: // the driver tries again, or gives up and calls ended
	case o.env.reconciling[o.pool]:
		o.env.reconciling[o.pool] = false
		o.reconcile = o.env.newReconcilePool(o.pool)
		return op.Again, nil
	default:
		o.over = true
		delete(o.env.reconciling, o.pool)
	}
	return progress, err
}

// ended lets the next reconciliation start after one that was given up.
func (o *coalesced) ended() {
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	if !o.over {
		delete(o.env.reconciling, o.pool)
	}
}

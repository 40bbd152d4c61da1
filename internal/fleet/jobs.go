package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"

	"golang.org/x/sync/singleflight"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// JobOptions are the parts for webhooks and job pools. Store and GitHub are
// required.
type JobOptions struct {
	Store  JobStore
	GitHub GitHubJobs
	// Pools are the job pools, by the name of their pool.
	Pools map[string]JobPool
	// Rules say whose runs get hosts when their jobs are queued.
	Rules policy.Rules
	// Scope is whose runners the hosts of a repository become: see
	// lifecycle.Job.Scope. nil: the repository's.
	Scope func(repository string) string
	// Parse reads the body of a delivery that is recovered; nil: there are no
	// webhooks, and no jobs by them.
	Parse func(event, deliveryID string, body []byte, now time.Time) (lifecycle.Webhook, error)
}

// JobPool is a pool whose hosts run one job each.
type JobPool struct {
	policy.JobPool
	// Labels are those of its runners.
	Labels []string
	// Spec is what a turn asks for. Count, labels and scope are filled in.
	Spec lifecycle.Spec
	// Repositories may use it: patterns of "owner/name" in which * stands for
	// any part of a name.
	Repositories []string
	// Forks lets jobs through whose run is of a fork.
	Forks bool
}

// jobDesk is what the use-cases of jobs share.
type jobDesk struct {
	JobOptions
	labels map[string][]string // of the pools, for policy.MatchPool

	mu sync.Mutex
	// start runs an operation behind its caller; nil: nobody does, and the sweeps
	// go on with what is in the store.
	start func(what string, op op.Op)
	// balancing are the pools that are being balanced, and whether once more.
	balancing map[string]bool
	// freed are the turns, by pool, whose hosts were handed back and not looked
	// at since; looked is when all hosts of a pool were.
	freed  map[string][]string
	looked map[string]time.Time
	// reserved are the hosts, by key, that a request is about to claim.
	reserved map[string]bool
	// forks remembers of which runs the commit is a fork's: it never changes.
	forks  map[string]bool
	asking singleflight.Group
	// recovered is until when missed deliveries were asked for.
	recovered time.Time
}

// forksAtMost bounds the memory of forks: it is then begun anew.
const forksAtMost = 4096

func newJobDesk(o JobOptions, pools map[string]Pool) (*jobDesk, error) {
	if o.Store == nil || o.GitHub == nil {
		return nil, errors.New("jobs: store and github are required")
	}
	if o.Scope == nil {
		o.Scope = func(repository string) string { return repository }
	}
	d := &jobDesk{JobOptions: o, labels: map[string][]string{}, forks: map[string]bool{}, balancing: map[string]bool{}, reserved: map[string]bool{}, freed: map[string][]string{}, looked: map[string]time.Time{}}
	for name, p := range o.Pools {
		if _, ok := pools[name]; !ok {
			return nil, fmt.Errorf("job pool %s: there is no pool of that name", name)
		}
		if p.Maximum < 1 || p.Minimum < 0 || p.Minimum > p.Maximum {
			return nil, fmt.Errorf("job pool %s: minimum %d and maximum %d do not fit", name, p.Minimum, p.Maximum)
		}
		d.labels[name] = p.Labels
	}
	return d, nil
}

// begin runs an operation behind, if anybody does.
func (d *jobDesk) begin(what string, op op.Op) {
	d.mu.Lock()
	start := d.start
	d.mu.Unlock()
	if start != nil {
		start(what, op)
	}
}

// ofFork reports whether the commit of a run is a fork's, by GitHub's word.
// What GitHub does not say counts as a fork.
func (f *Fleet) ofFork(ctx context.Context, repository, runID string) (bool, error) {
	d, key := f.jobs, lifecycle.RunKey(repository, runID)
	d.mu.Lock()
	fork, known := d.forks[key]
	d.mu.Unlock()
	if known {
		return fork, nil
	}
	// The jobs of a run are queued together: one call tells them all.
	answer, err, _ := d.asking.Do(key, func() (any, error) {
		run, err := d.GitHub.WorkflowRun(context.WithoutCancel(ctx), repository, runID)
		return forkOf(run) != policy.ForkNo, err
	})
	if err != nil {
		return false, fmt.Errorf("ask GitHub about run %s of %s: %w", runID, repository, err)
	}
	fork = answer.(bool)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.forks) >= forksAtMost {
		clear(d.forks)
	}
	d.forks[key] = fork
	return fork, nil
}

// forkOf is what a run says of its commit.
func forkOf(run lifecycle.WorkflowRun) policy.Fork {
	switch {
	case run.HeadRepositoryID == 0 || run.RepositoryID == 0:
		return policy.ForkUnknown
	case run.HeadRepositoryID != run.RepositoryID:
		return policy.ForkYes
	}
	return policy.ForkNo
}

// Fork says whether the commit of a run is a fork's, by GitHub's word.
func (f *Fleet) Fork(ctx context.Context, repository, runID string) (policy.Fork, error) {
	if f.jobs == nil {
		return policy.ForkUnknown, nil
	}
	fork, err := f.ofFork(ctx, repository, runID)
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

package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Refresh brings what the fleet needs to be there, looks at every host once and
// then runs every sweep. With a dry run
// it decides and says what it would do, and does nothing.
type Refresh struct {
	op.Stages
	f      *Fleet
	page   lifecycle.PageOf
	last   bool
	hosts  []lifecycle.Facts
	sweeps []op.Op

	resources []lifecycle.Resource
	decided   []op.Decided
}

// NewRefresh begins a refresh.
func (f *Fleet) NewRefresh(dryRun bool) *Refresh {
	r := &Refresh{f: f}
	r.Stages = f.ops.Stages("refresh")
	r.Events.Dry, r.Events.Decided = dryRun, &r.decided
	due, cloud, github := f.sweeps.NewDueSweep(), f.sweeps.NewCloudSweep(), f.sweeps.NewGitHubSweep()
	scaleDown, services, warm := f.scaledown.NewSweep(), f.NewServiceSweep(), f.warm.NewSweep()
	work := f.NewWorkSweep()
	for _, j := range []*op.Recorder{
		&due.Events, &cloud.Events, &github.Events, &work.Events, &scaleDown.Events, &services.Events, &warm.Events,
	} {
		j.Dry, j.Decided = dryRun, &r.decided
	}
	r.sweeps = []op.Op{cloud, github, work, scaleDown, services, warm}
	if !dryRun {
		r.sweeps = slices.Insert(r.sweeps, 0, op.Op(due))
	}
	r.Next = r.ensure
	return r
}

// Decisions are those made so far, one or more per host.
func (r *Refresh) Decisions() []op.Decided { return r.decided }

// list takes a page of hosts. A refresh is an order by a person, so it may go
// through everything there is.
func (r *Refresh) list(ctx context.Context, now time.Time) (op.Progress, error) {
	got, err := r.f.store.ListInstances(ctx, lifecycle.Filter{States: hosts.LiveStates}, r.page)
	if err != nil {
		return op.Again, fmt.Errorf("list hosts: %w", err)
	}
	r.page.After, r.last = got.Next, got.Next == ""
	keys := make([]string, 0, len(got.Items))
	for _, record := range got.Items {
		keys = append(keys, record.HostKey)
	}
	reports, err := r.f.hosts.Reports(ctx, keys, now)
	if err != nil {
		return op.Again, err
	}
	if r.hosts, err = r.f.hosts.LoadFactsWithCloud(ctx, keys, reports, now); err != nil {
		return op.Again, err
	}
	r.Next = r.host
	return op.Again, nil
}

func (r *Refresh) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.hosts) == 0 {
		r.Next = r.list
		if r.last {
			r.Next = r.sweep
		}
		return op.Again, nil
	}
	if _, _, err := r.f.hosts.Reconcile(ctx, &r.Events, r.hosts[0], now); !r.Past(ctx, err) {
		return op.Again, err
	}
	r.hosts = r.hosts[1:]
	return op.Again, nil
}

func (r *Refresh) sweep(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.sweeps) == 0 {
		return op.Done, nil
	}
	progress, err := r.sweeps[0].Step(ctx, now)
	if progress.Done {
		r.sweeps = r.sweeps[1:]
	}
	if err != nil && !(progress.Done && r.Past(ctx, err)) {
		return op.Again, err
	}
	return op.Again, nil
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Refresh creates what the fleet needs, looks at every host once and then runs every
// sweep of the table. In a dry run it decides and reports what it would do, and changes
// nothing: sweeps that cannot do that are left out.
type Refresh struct {
	op.Stages
	f      *Fleet
	page   lifecycle.PageOf
	last   bool
	hosts  []lifecycle.Facts
	sweeps []running

	resources []resources.Resource
	decided   []op.Decided
}

// running is a sweep of a refresh.
type running struct {
	sweeps.Kind
	op op.Op
}

// NewRefresh begins a refresh.
func (f *Fleet) NewRefresh(dryRun bool) *Refresh {
	r := &Refresh{f: f, Stages: f.ops.Stages("refresh")}
	r.Events.Dry, r.Events.Decided = dryRun, &r.decided
	for _, k := range f.sweepTable() {
		if dryRun && !k.Dry || k.Aside {
			continue
		}
		s := running{k, k.New()}
		if o, ok := s.op.(interface{ Recorder() *op.Recorder }); ok {
			o.Recorder().Dry, o.Recorder().Decided = dryRun, &r.decided
		}
		r.sweeps = append(r.sweeps, s)
	}
	r.Next = r.ensure
	return r
}

// Decisions are those made so far, one or more per host.
func (r *Refresh) Decisions() []op.Decided { return r.decided }

// list takes a page of hosts. A refresh is an order by a person, so it may go through everything there is.
func (r *Refresh) list(ctx context.Context, now time.Time) (op.Progress, error) {
	got, err := r.f.store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates}, r.page)
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
	return r.Then(r.host)
}

func (r *Refresh) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.hosts) == 0 {
		r.Next = r.list
		if r.last {
			r.Next = r.sweep
		}
		return op.Again, nil
	}
	if _, _, err := r.f.hosts.ReconcileSwept(ctx, &r.Events, r.hosts[0], now); !r.Past(ctx, err) {
		return op.Again, err
	}
	r.hosts = r.hosts[1:]
	return op.Again, nil
}

// sweep does a step of the next sweep.
func (r *Refresh) sweep(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.sweeps) == 0 {
		return op.Done, nil
	}
	s := r.sweeps[0]
	progress, err := s.op.Step(ctx, now)
	if err != nil && s.Measures && ctx.Err() == nil {
		r.f.log.Warn("sweep failed; the refresh goes on without it", logkey.Sweep, s.Name, logkey.Error, err)
		progress, err = op.Done, nil
	}
	if progress.Done {
		r.sweeps = r.sweeps[1:]
	}
	if err != nil && !(progress.Done && r.Past(ctx, err)) {
		return op.Again, err
	}
	return op.Wait(progress.Wait), nil
}

// Ensure brings the tables, queues and launch templates that the adapters need to what the configuration
// says, and returns each that was changed. In a dry run it changes nothing and returns what it would change.
// What it could not do is in the error, one for each thing, beside what it did.
type Ensure func(ctx context.Context, dryRun bool) ([]resources.Resource, error)

// ensure is the first step of a refresh: nothing can be swept before the tables are there.
func (r *Refresh) ensure(ctx context.Context, _ time.Time) (op.Progress, error) {
	if r.f.ensure != nil {
		changed, err := r.f.ensure(ctx, r.Events.Dry)
		if r.Events.Dry {
			r.resources = nil // a repeat tells everything again
		}
		r.resources = append(r.resources, changed...)
		if err != nil {
			return op.Again, err
		}
	}
	if r.Events.Dry && lacksTable(r.resources) {
		return op.Done, nil // without its tables a fleet has no hosts to decide on
	}
	return r.Then(r.list)
}

// Resources are those that were created or changed, or in a dry run would be.
func (r *Refresh) Resources() []resources.Resource { return r.resources }

func lacksTable(changed []resources.Resource) bool {
	for _, r := range changed {
		if r.Kind == "table" && r.Change == resources.Created {
			return true
		}
	}
	return false
}

// Together is all of several, each whatever becomes of the others.
func Together(all ...Ensure) Ensure {
	return func(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
		var changed []resources.Resource
		var errs []error
		for _, ensure := range all {
			some, err := ensure(ctx, dryRun)
			changed, errs = append(changed, some...), append(errs, err)
		}
		return changed, errors.Join(errs...)
	}
}

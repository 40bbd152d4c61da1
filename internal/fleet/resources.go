package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Ensure brings the tables, queues and launch templates that the adapters need to what the configuration
// says, and returns each that was changed. In a dry run it changes nothing and returns what it would change.
// What it could not do is in the error, one for each thing, beside what it did.
type Ensure func(ctx context.Context, dryRun bool) ([]lifecycle.Resource, error)

// ensure is the first step of a refresh: nothing can be swept before the tables are there.
func (r *Refresh) ensure(ctx context.Context, _ time.Time) (op.Progress, error) {
	if r.f.ensure != nil {
		resources, err := r.f.ensure(ctx, r.Events.Dry)
		if r.Events.Dry {
			r.resources = nil // a repeat tells everything again
		}
		r.resources = append(r.resources, resources...)
		if err != nil {
			return op.Again, err
		}
	}
	if r.Events.Dry && lacksTable(r.resources) {
		return op.Done, nil // without its tables a fleet has no hosts to decide on
	}
	r.Next = r.list
	return op.Again, nil
}

// Resources are those that were created or changed, or in a dry run would be.
func (r *Refresh) Resources() []lifecycle.Resource { return r.resources }

func lacksTable(resources []lifecycle.Resource) bool {
	for _, r := range resources {
		if r.Kind == "table" && r.Change == lifecycle.ResourceCreated {
			return true
		}
	}
	return false
}

// Together is all of several, each whatever becomes of the others.
func Together(all ...Ensure) Ensure {
	return func(ctx context.Context, dryRun bool) ([]lifecycle.Resource, error) {
		var resources []lifecycle.Resource
		var errs []error
		for _, ensure := range all {
			some, err := ensure(ctx, dryRun)
			resources, errs = append(resources, some...), append(errs, err)
		}
		return resources, errors.Join(errs...)
	}
}

package fleet

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/services/model"
)

// WorkBacklog is the Backlog of services that have their jobs here.
type WorkBacklog struct {
	Store WorkerStore
	// AtMost is how many jobs of each kind are counted: with more, the count says
	// so many.
	AtMost int
}

// Count tells what waits and runs in the queue of a service.
func (b WorkBacklog) Count(ctx context.Context, service string) (model.Backlog, error) {
	n, err := b.Store.CountWork(ctx, service, b.AtMost)
	if err != nil {
		return model.Backlog{}, fmt.Errorf("count the jobs of service %s: %w", service, err)
	}
	return model.Backlog{Queued: &n.Waiting, Busy: &n.Running, More: n.Waiting >= b.AtMost}, nil
}

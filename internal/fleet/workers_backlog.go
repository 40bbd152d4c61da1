package fleet

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// WorkBacklog is the Backlog of services that have their jobs here.
type WorkBacklog struct{ Store WorkerStore }

// Count tells what waits and runs in the queue of a service.
func (b WorkBacklog) Count(ctx context.Context, service string) (lifecycle.Backlog, error) {
	n, err := b.Store.CountWork(ctx, service)
	if err != nil {
		return lifecycle.Backlog{}, fmt.Errorf("count the jobs of service %s: %w", service, err)
	}
	return lifecycle.Backlog{Queued: &n.Waiting, Busy: &n.Running}, nil
}

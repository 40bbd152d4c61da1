package workqueue

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Store keeps the job queues of the services and their workers. Its errors are those of fleet.Store.
type Store interface {
	// CreateWork writes a new job: ErrExists if the service has one with its id.
	CreateWork(ctx context.Context, j model.Job) error
	// UpdateWork replaces the job if its stored version is j.Version, and returns it as stored, with the next version.
	// Otherwise the error is ErrConflict. A claim is such an update: of two workers that read the same waiting job, one loses.
	UpdateWork(ctx context.Context, j model.Job) (model.Job, error)
	// Work reads one job, consistently: ErrNotFound.
	Work(ctx context.Context, service, id string) (model.Job, error)
	// WaitingWork lists the ids of at most limit waiting jobs of a service, the oldest first. It does not read the jobs,
	// whose payloads may be large. The index may lag.
	WaitingWork(ctx context.Context, service string, limit int) ([]string, error)
	// CountWork counts the waiting and the running jobs of a service, at most atMost of each. It reads no more than it
	// counts. The index may lag.
	CountWork(ctx context.Context, service string, atMost int) (model.JobCount, error)
	// ListWork lists the jobs of a service that are in one of the states, the oldest first; no states: no jobs. The
	// index may lag.
	ListWork(ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf) (lifecycle.Page[model.Job], error)
	// DueWork is DueInstances for the jobs of all services.
	DueWork(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[model.Job], error)

	// Worker reads one worker, consistently: ErrNotFound.
	Worker(ctx context.Context, service, id string) (model.Worker, error)
	// UpdateWorker replaces the worker if its stored version is w.Version (0: there is no row), and returns it as
	// stored, with the next version. Otherwise the error is ErrConflict.
	UpdateWorker(ctx context.Context, w model.Worker) (model.Worker, error)
	// Workers lists the workers of a service, by id.
	Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error)
}

package services

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
)

// Scaler is where the runners of services are containers. It knows services by their names in the configuration.
type Scaler interface {
	// Describe returns an observation of each of the services. An error on one of them is in its own observation and
	// does not hide the others. The error of a service that does not exist is lifecycle.ErrNotFound.
	Describe(ctx context.Context, services []string) map[string]model.Observation
	// SetDesired makes a service run that many runners. The caller cannot choose which of them end when the number
	// becomes smaller, so it asks for a smaller number only when no runner has a job.
	SetDesired(ctx context.Context, service string, desired int) error
}

// Backlog counts the jobs of a service.
type Backlog interface {
	// Count returns how many jobs wait and how many have a runner. A number that is unknown is nil, and the error says
	// why. Count returns when ctx ends.
	Count(ctx context.Context, service string) (model.Backlog, error)
}

// Store keeps what was last observed of services, and the decisions that followed. Its errors are those of fleet.Store.
type Store interface {
	// Service reads one row, consistently. A row that was never written has only its name, and version 0.
	Service(ctx context.Context, name string) (model.Service, error)
	// UpdateService replaces the row if its stored version is s.Version (0: there is no row), and returns it as stored,
	// with the next version. Otherwise the error is lifecycle.ErrConflict.
	UpdateService(ctx context.Context, s model.Service) (model.Service, error)
}

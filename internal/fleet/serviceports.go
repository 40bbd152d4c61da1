package fleet

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
)

// Services is where the runners of services are containers. Services are known
// by their names in the configuration.
type Services interface {
	// Describe tells of each of the services, or why it cannot: one that cannot
	// be asked for never hides the others. One that is not there is
	// lifecycle.ErrNotFound.
	Describe(ctx context.Context, services []string) map[string]model.Observation
	// SetDesired has a service run so many runners. Which of them end when they
	// become fewer is not told: it is asked for only when none is at work.
	SetDesired(ctx context.Context, service string, desired int) error
}

// Backlog counts the jobs of a service.
type Backlog interface {
	// Count tells what waits and what is worked on. What is not known is nil, and
	// the error tells why. It gives up when ctx ends.
	Count(ctx context.Context, service string) (model.Backlog, error)
}

// ServiceStore keeps what was last seen of services and decided on them. Its
// errors are those of Store.
type ServiceStore interface {
	// Service reads one, consistently. One that nobody wrote has only its name,
	// and version 0.
	Service(ctx context.Context, name string) (model.Service, error)
	// UpdateService replaces the row whose stored version is s.Version (0: there
	// is none) and returns it as stored, with the next version. Else: ErrLost.
	UpdateService(ctx context.Context, s model.Service) (model.Service, error)
}

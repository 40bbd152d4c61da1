package instrument

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Scaler is a scaler of services whose calls are counted.
type Scaler struct {
	services.Scaler
	Calls
}

// Describe implements services.Scaler. It counts as failed if it failed for one of the services.
func (s Scaler) Describe(ctx context.Context, names []string) (looks map[string]model.Observation) {
	var err error
	defer s.count("describe", &err)
	looks = s.Scaler.Describe(ctx, names)
	for _, look := range looks {
		err = errors.Join(err, look.Err)
	}
	return looks
}

// SetDesired implements services.Scaler.
func (s Scaler) SetDesired(ctx context.Context, service string, desired int) (err error) {
	defer s.count("set_desired", &err)
	return s.Scaler.SetDesired(ctx, service, desired)
}

// Backlog is a backlog whose calls are counted.
type Backlog struct {
	services.Backlog
	Calls
}

// Count implements services.Backlog.
func (b Backlog) Count(ctx context.Context, service string) (_ model.Backlog, err error) {
	defer b.count("count", &err)
	return b.Backlog.Count(ctx, service)
}

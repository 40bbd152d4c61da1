package main

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// countedServices are services whose calls are counted.
type countedServices struct {
	services.Scaler
	counter
}

// Describe counts as failed when it failed for one of the services.
func (s countedServices) Describe(ctx context.Context, services []string) (looks map[string]model.Observation) {
	var err error
	defer s.count("describe", &err)
	looks = s.Scaler.Describe(ctx, services)
	for _, look := range looks {
		err = errors.Join(err, look.Err)
	}
	return looks
}

func (s countedServices) SetDesired(ctx context.Context, service string, desired int) (err error) {
	defer s.count("set_desired", &err)
	return s.Scaler.SetDesired(ctx, service, desired)
}

// countedBacklog is a backlog whose calls are counted.
type countedBacklog struct {
	services.Backlog
	counter
}

func (b countedBacklog) Count(ctx context.Context, service string) (_ model.Backlog, err error) {
	defer b.count("count", &err)
	return b.Backlog.Count(ctx, service)
}

package main

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

type runnerService = model.Service

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

// countedServiceStore is a store of services whose calls are counted.
type countedServiceStore struct {
	services.Store
	counter
}

func (s countedServiceStore) Service(ctx context.Context, name string) (_ runnerService, err error) {
	defer s.count("service", &err)
	return s.Store.Service(ctx, name)
}

func (s countedServiceStore) UpdateService(ctx context.Context, v runnerService) (_ runnerService, err error) {
	defer s.count("update_service", &err)
	return s.Store.UpdateService(ctx, v)
}

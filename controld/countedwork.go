package main

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

type (
	workJob = model.Job
	worker  = model.Worker
)

// countedWork is a store of the queues of services whose calls are counted.
type countedWork struct {
	workqueue.Store
	counter
}

func (s countedWork) CreateWork(ctx context.Context, j workJob) (err error) {
	defer s.count("create_work", &err)
	return s.Store.CreateWork(ctx, j)
}

func (s countedWork) UpdateWork(ctx context.Context, j workJob) (_ workJob, err error) {
	defer s.count("update_work", &err)
	return s.Store.UpdateWork(ctx, j)
}

func (s countedWork) Work(ctx context.Context, service, id string) (_ workJob, err error) {
	defer s.count("work", &err)
	return s.Store.Work(ctx, service, id)
}

func (s countedWork) WaitingWork(ctx context.Context, service string, limit int) (_ []string, err error) {
	defer s.count("waiting_work", &err)
	return s.Store.WaitingWork(ctx, service, limit)
}

func (s countedWork) CountWork(ctx context.Context, service string, atMost int) (_ model.JobCount, err error) {
	defer s.count("count_work", &err)
	return s.Store.CountWork(ctx, service, atMost)
}

func (s countedWork) ListWork(
	ctx context.Context, service string, states []model.JobState, page pageOf,
) (_ lifecycle.Page[workJob], err error) {
	defer s.count("list_work", &err)
	return s.Store.ListWork(ctx, service, states, page)
}

func (s countedWork) DueWork(ctx context.Context, now time.Time, page pageOf) (_ lifecycle.Page[workJob], err error) {
	defer s.count("due_work", &err)
	return s.Store.DueWork(ctx, now, page)
}

func (s countedWork) Worker(ctx context.Context, service, id string) (_ worker, err error) {
	defer s.count("worker", &err)
	return s.Store.Worker(ctx, service, id)
}

func (s countedWork) UpdateWorker(ctx context.Context, w worker) (_ worker, err error) {
	defer s.count("update_worker", &err)
	return s.Store.UpdateWorker(ctx, w)
}

func (s countedWork) Workers(ctx context.Context, service string, page pageOf) (_ lifecycle.Page[worker], err error) {
	defer s.count("workers", &err)
	return s.Store.Workers(ctx, service, page)
}

package sim

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// The rows of services, their jobs and workers, as a replica reaches them.

func (s storePort) Service(_ context.Context, name string) (model.Service, error) {
	return read(s, "read service", "", func(m *memory.Store) (model.Service, error) { return m.Service(background, name) })
}

func (s storePort) UpdateService(_ context.Context, v model.Service) (model.Service, error) {
	return write(s, "update service", func(m *memory.Store) (model.Service, error) {
		return m.UpdateService(background, v)
	}, func(after model.Service) { s.w.tell(s.w.who(), "writes", "service: "+after.Reason) })
}

func (s storePort) CreateWork(_ context.Context, j model.Job) error {
	_, err := write(s, "create job "+j.ID, func(m *memory.Store) (model.Job, error) {
		if err := m.CreateWork(background, j); err != nil {
			return j, err
		}
		return m.Work(background, j.Service, j.ID)
	}, func(after model.Job) { s.w.workWritten(model.Job{}, after) })
	return err
}

func (s storePort) UpdateWork(_ context.Context, j model.Job) (model.Job, error) {
	var before model.Job
	return write(s, "update job "+j.ID, func(m *memory.Store) (model.Job, error) {
		before, _ = m.Work(background, j.Service, j.ID)
		return m.UpdateWork(background, j)
	}, func(after model.Job) { s.w.workWritten(before, after) })
}

func (s storePort) Work(_ context.Context, service, id string) (model.Job, error) {
	return read(s, "read job", "", func(m *memory.Store) (model.Job, error) { return m.Work(background, service, id) })
}

func (s storePort) WaitingWork(_ context.Context, service string, limit int) ([]string, error) {
	return read(s, "list waiting jobs", "", func(m *memory.Store) ([]string, error) { return m.WaitingWork(background, service, limit) })
}

func (s storePort) CountWork(_ context.Context, service string, atMost int) (model.JobCount, error) {
	return read(s, "count jobs", "", func(m *memory.Store) (model.JobCount, error) {
		s.w.current.counted = s.w.now
		return m.CountWork(background, service, atMost)
	})
}

func (s storePort) ListWork(
	_ context.Context, service string, states []model.JobState, page lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	return read(s, "list jobs", "", func(m *memory.Store) (lifecycle.Page[model.Job], error) {
		return m.ListWork(background, service, states, page)
	})
}

func (s storePort) DueWork(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[model.Job], error) {
	return read(s, "list due jobs", "", func(m *memory.Store) (lifecycle.Page[model.Job], error) {
		return m.DueWork(background, now, page)
	})
}

func (s storePort) Worker(_ context.Context, service, id string) (model.Worker, error) {
	return read(s, "read worker", "", func(m *memory.Store) (model.Worker, error) { return m.Worker(background, service, id) })
}

func (s storePort) UpdateWorker(_ context.Context, k model.Worker) (model.Worker, error) {
	return write(s, "update worker "+k.ID, func(m *memory.Store) (model.Worker, error) {
		return m.UpdateWorker(background, k)
	}, func(model.Worker) {})
}

func (s storePort) Workers(_ context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	return read(s, "list workers", "", func(m *memory.Store) (lifecycle.Page[model.Worker], error) {
		return m.Workers(background, service, page)
	})
}

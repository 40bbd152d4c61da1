package sim

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// The rows of services, their jobs and workers, as a replica reaches them.

func (s storePort) Service(_ context.Context, name string) (lifecycle.Service, error) {
	return read(s, "read service", "", func(m *memory.Store) (lifecycle.Service, error) { return m.Service(background, name) })
}

func (s storePort) UpdateService(_ context.Context, v lifecycle.Service) (lifecycle.Service, error) {
	return write(s, "update service", func(m *memory.Store) (lifecycle.Service, error) {
		return m.UpdateService(background, v)
	}, func(after lifecycle.Service) { s.w.tell(s.w.who(), "writes", "service: "+after.Reason) })
}

func (s storePort) CreateWork(_ context.Context, j lifecycle.WorkJob) error {
	_, err := write(s, "create job "+j.ID, func(m *memory.Store) (lifecycle.WorkJob, error) {
		if err := m.CreateWork(background, j); err != nil {
			return j, err
		}
		return m.Work(background, j.Service, j.ID)
	}, func(after lifecycle.WorkJob) { s.w.workWritten(lifecycle.WorkJob{}, after) })
	return err
}

func (s storePort) UpdateWork(_ context.Context, j lifecycle.WorkJob) (lifecycle.WorkJob, error) {
	var before lifecycle.WorkJob
	return write(s, "update job "+j.ID, func(m *memory.Store) (lifecycle.WorkJob, error) {
		before, _ = m.Work(background, j.Service, j.ID)
		return m.UpdateWork(background, j)
	}, func(after lifecycle.WorkJob) { s.w.workWritten(before, after) })
}

func (s storePort) Work(_ context.Context, service, id string) (lifecycle.WorkJob, error) {
	return read(s, "read job", "", func(m *memory.Store) (lifecycle.WorkJob, error) { return m.Work(background, service, id) })
}

func (s storePort) WaitingWork(_ context.Context, service string, limit int) ([]string, error) {
	return read(s, "list waiting jobs", "", func(m *memory.Store) ([]string, error) { return m.WaitingWork(background, service, limit) })
}

func (s storePort) CountWork(_ context.Context, service string, atMost int) (lifecycle.WorkCount, error) {
	return read(s, "count jobs", "", func(m *memory.Store) (lifecycle.WorkCount, error) {
		s.w.current.counted = s.w.now
		return m.CountWork(background, service, atMost)
	})
}

func (s storePort) ListWork(
	_ context.Context, service string, states []lifecycle.WorkState, page lifecycle.PageOf,
) (lifecycle.Page[lifecycle.WorkJob], error) {
	return read(s, "list jobs", "", func(m *memory.Store) (lifecycle.Page[lifecycle.WorkJob], error) {
		return m.ListWork(background, service, states, page)
	})
}

func (s storePort) DueWork(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.WorkJob], error) {
	return read(s, "list due jobs", "", func(m *memory.Store) (lifecycle.Page[lifecycle.WorkJob], error) {
		return m.DueWork(background, now, page)
	})
}

func (s storePort) Worker(_ context.Context, service, id string) (lifecycle.Worker, error) {
	return read(s, "read worker", "", func(m *memory.Store) (lifecycle.Worker, error) { return m.Worker(background, service, id) })
}

func (s storePort) UpdateWorker(_ context.Context, k lifecycle.Worker) (lifecycle.Worker, error) {
	return write(s, "update worker "+k.ID, func(m *memory.Store) (lifecycle.Worker, error) {
		return m.UpdateWorker(background, k)
	}, func(lifecycle.Worker) {})
}

func (s storePort) Workers(_ context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Worker], error) {
	return read(s, "list workers", "", func(m *memory.Store) (lifecycle.Page[lifecycle.Worker], error) {
		return m.Workers(background, service, page)
	})
}

package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store"
)

var services = kind[model.Service]{
	KindOf: store.Services, noun: "a service", blank: true,
	keys:    []store.Key{{"jobs-eu"}, {"jobs-us"}},
	strange: []store.Key{{"jobs"}},
	full:    func(key store.Key) model.Service { return fullService(key[0]) },
	bare:    func(key store.Key) model.Service { return model.Service{Name: key[0]} },
	update:  store.Store.UpdateService,
	get: func(s store.Store, ctx context.Context, key store.Key) (model.Service, error) {
		return s.Service(ctx, key[0])
	},
}

var _ = add(group{name: "services", tests: append(services.cases(),
	suiteTest{"none is not the same as unknown", testServiceUnknown},
	suiteTest{"it is no lease", testServiceIsNoLease},
)})

// fullService has a value in every attribute.
func fullService(name string) model.Service {
	queued, busy := 1<<33, 7
	return model.Service{
		Name: name, Version: 1, Tasks: model.Tasks{Desired: 3, Running: 2, Pending: 1},
		Backlog: model.Backlog{Queued: &queued, Busy: &busy, More: true}, IdleChecks: 4,
		CountedAt: start, CheckedAt: start.Add(time.Second), Wanted: 2, Reason: "7 jobs are worked on", ReasonCode: lifecycle.ReasonJobsRunning,
	}
}

// testServiceUnknown: a backlog that was counted as 0, and one that could not be counted.
func testServiceUnknown(t *testing.T, w world) {
	nothing, v := 0, fullService("jobs-eu")
	v.Queued, v.Busy = &nothing, nil
	services.put(t, w, v)
	if got := services.stored(t, w, "jobs-eu"); got.Busy != nil || got.Queued == nil || *got.Queued != 0 {
		t.Errorf("nothing queued and busy unknown came back as %v and %v", got.Queued, got.Busy)
	}
}

// testServiceIsNoLease: a service may be called like the lease of the sweeps.
func testServiceIsNoLease(t *testing.T, w world) {
	services.put(t, w, fullService("sweep"))
	_, err := w.Store.Lease(t.Context(), "sweep")
	wantError(t, "the lease of that name", err, lifecycle.ErrNotFound)
}

var workers = kind[model.Worker]{
	KindOf: store.Workers, noun: "a worker",
	keys:    []store.Key{{service, "arn:aws:ecs:eu-west-1:1:task/x"}, {service, "b"}, {service + "-2", "b"}},
	strange: []store.Key{{service, "B"}, {"other", "b"}},
	full: func(key store.Key) model.Worker {
		of := fullWorker(key[1])
		of.Service = key[0]
		return of
	},
	bare:   func(key store.Key) model.Worker { return model.Worker{Service: key[0], ID: key[1]} },
	update: store.Store.UpdateWorker,
	get: func(s store.Store, ctx context.Context, key store.Key) (model.Worker, error) {
		return s.Worker(ctx, key[0], key[1])
	},
}

var _ = add(group{name: "workers", tests: append(workers.cases(),
	suiteTest{"workers of a service by id", testWorkers},
), concurrent: []suiteTest{{"no heartbeat is lost among 64", testHeartbeatsAddUp}}})

// fullWorker has a value in every attribute.
func fullWorker(id string) model.Worker {
	return model.Worker{
		Service: service, ID: id, WorkerVersion: "1.2.3", HeartbeatAt: start, JobID: "a", Version: 1, ExpiresAt: start.Add(10 * time.Hour),
		OfflineAt: start.Add(5 * time.Minute),
	}
}

func testWorkers(t *testing.T, w world) {
	ids := []string{"A", "a", "a/b", "b", "task:1"}
	for _, i := range []int{3, 0, 4, 2, 1} {
		workers.put(t, w, fullWorker(ids[i]))
	}
	other := fullWorker("a")
	other.Service = "render-2"
	workers.put(t, w, other)
	work.seed(t, w)
	for _, limit := range []int{0, 1, 2, 5} {
		var got []string
		for _, one := range all(t, limit, func(of lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
			return w.Store.Workers(t.Context(), service, of)
		}) {
			equal(t, "service", service, one.Service)
			got = append(got, one.ID)
		}
		equal(t, "workers", ids, got)
	}
	_, err := w.Store.Workers(t.Context(), service, lifecycle.PageOf{After: "nonsense"})
	wantError(t, "a token that no listing gave", err, lifecycle.ErrPageToken)
}

func testHeartbeatsAddUp(t *testing.T, w world) {
	race(t, nil, func(int) error {
		for {
			of, err := w.Store.Worker(t.Context(), service, "a")
			if errors.Is(err, lifecycle.ErrNotFound) {
				of, err = model.Worker{Service: service, ID: "a"}, nil
			}
			if err != nil {
				return err
			}
			of.HeartbeatAt = start
			if _, err = w.Store.UpdateWorker(t.Context(), of); !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
		}
	})
	equal(t, "version", int64(writersIn(t)), workers.stored(t, w, service, "a").Version)
}

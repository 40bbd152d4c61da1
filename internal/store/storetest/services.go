package storetest

import (
	"context"
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

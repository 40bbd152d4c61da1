package storetest

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

var _ = add(group{name: "services", tests: []suiteTest{
	{"a service comes back as it was written", testServiceRoundTrip},
	{"one that nobody wrote has only its name", testServiceNone},
	{"an update needs the stored version", testServiceVersion},
	{"rows share nothing with their callers", testServiceAliasing},
	{"it is no lease", testServiceIsNoLease},
}})

// fullService has a value in every attribute, and is the first write of it.
func fullService(name string) model.Service {
	queued, busy := 1<<33, 7
	return model.Service{
		Name: name, Tasks: model.Tasks{Desired: 3, Running: 2, Pending: 1},
		Backlog: model.Backlog{Queued: &queued, Busy: &busy, More: true}, IdleChecks: 4,
		CountedAt: start, CheckedAt: start.Add(time.Second), Wanted: 2, Reason: "7 jobs are worked on",
	}
}

func (w world) service(t *testing.T, name string) model.Service {
	t.Helper()
	v, err := w.Store.Service(t.Context(), name)
	if err != nil {
		t.Fatalf("Service(%s): %v", name, err)
	}
	return v
}

func (w world) updateService(t *testing.T, v model.Service) model.Service {
	t.Helper()
	stored, err := w.Store.UpdateService(t.Context(), v)
	if err != nil {
		t.Fatalf("UpdateService(%s): %v", v.Name, err)
	}
	return stored
}

func testServiceRoundTrip(t *testing.T, w world) {
	want := fullService("jobs-eu")
	got := w.updateService(t, want)
	want.Version = 1
	isFull(t, want)
	equal(t, "what update returns", want, got)
	equal(t, "service", want, w.service(t, "jobs-eu"))

	want.CheckedAt = start.In(time.FixedZone("elsewhere", 2*60*60))
	nothing := 0
	want.Queued, want.Busy, want.IdleChecks, want.Reason = &nothing, nil, 0, ""
	got = w.updateService(t, want)
	isUTC(t, "checkedAt as update returns it", got.CheckedAt)
	equal(t, "what update returns and what is stored", got, w.service(t, "jobs-eu"))
	if got := w.service(t, "jobs-eu"); got.Busy != nil || got.Queued == nil || *got.Queued != 0 {
		t.Errorf("nothing queued and busy unknown came back as %v and %v", got.Queued, got.Busy)
	}
}

func testServiceNone(t *testing.T, w world) {
	equal(t, "service", model.Service{Name: "jobs-eu"}, w.service(t, "jobs-eu"))
	w.updateService(t, fullService("jobs-eu"))
	equal(t, "another service", model.Service{Name: "jobs-us"}, w.service(t, "jobs-us"))
}

func testServiceVersion(t *testing.T, w world) {
	update := func(version int64) error {
		_, err := w.Store.UpdateService(t.Context(), model.Service{Name: "jobs-eu", Version: version})
		return err
	}
	for _, version := range []int64{-1, 1} {
		wantError(t, "update of none with a version", update(version), lifecycle.ErrConflict)
	}
	first := w.updateService(t, fullService("jobs-eu"))
	for _, version := range []int64{-1, 0, 2} {
		wantError(t, "update with another version", update(version), lifecycle.ErrConflict)
	}
	equal(t, "service", first, w.service(t, "jobs-eu"))
	want := model.Service{Name: "jobs-eu", Version: 1}
	got := w.updateService(t, want)
	want.Version = 2
	equal(t, "what update returns", want, got)
	equal(t, "service", want, w.service(t, "jobs-eu"))
}

func testServiceAliasing(t *testing.T, w world) {
	scribble := func(v model.Service) { *v.Queued, *v.Busy = -1, -1 }
	want := fullService("jobs-eu")
	want.Version = 1
	v := fullService("jobs-eu")
	updated := w.updateService(t, v)
	scribble(v)
	scribble(updated)
	equal(t, "service after both sides of an update changed their own", want, w.service(t, "jobs-eu"))
	scribble(w.service(t, "jobs-eu"))
	equal(t, "service after a reader changed its own", want, w.service(t, "jobs-eu"))
}

// testServiceIsNoLease: a service may be called like the lease of the sweeps.
func testServiceIsNoLease(t *testing.T, w world) {
	w.updateService(t, fullService("sweep"))
	_, err := w.Store.Lease(t.Context(), "sweep")
	wantError(t, "the lease of that name", err, lifecycle.ErrNotFound)
}

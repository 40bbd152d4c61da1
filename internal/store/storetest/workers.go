package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

var _ = add(group{name: "workers", concurrent: true, tests: []suiteTest{
	{"a worker comes back as it was written", testWorkerRoundTrip},
	{"an update needs the stored version", testWorkerVersion},
	{"workers of a service by id", testWorkers},
	{"no heartbeat is lost among 64", testHeartbeatsAddUp},
}})

// fullWorker has a value in every attribute, and is the first of its id.
func fullWorker(id string) model.Worker {
	return model.Worker{
		Service: service, ID: id, WorkerVersion: "1.2.3", HeartbeatAt: start, JobID: "a", ExpiresAt: start.Add(10 * time.Hour),
	}
}

func (w world) updateWorker(t *testing.T, of model.Worker) model.Worker {
	t.Helper()
	stored, err := w.Store.UpdateWorker(t.Context(), of)
	if err != nil {
		t.Fatalf("UpdateWorker(%s): %v", of.ID, err)
	}
	return stored
}

func (w world) worker(t *testing.T, id string) model.Worker {
	t.Helper()
	got, err := w.Store.Worker(t.Context(), service, id)
	if err != nil {
		t.Fatalf("Worker(%s): %v", id, err)
	}
	return got
}

func testWorkerRoundTrip(t *testing.T, w world) {
	want := fullWorker("arn:aws:ecs:eu-west-1:1:task/x")
	want.HeartbeatAt = start.In(time.FixedZone("elsewhere", 2*60*60))
	got := w.updateWorker(t, want)
	want.Version = 1
	isFull(t, want)
	equal(t, "what update returns", want, got)
	isUTC(t, "heartbeatAt as update returns it", got.HeartbeatAt)
	equal(t, "worker", want, w.worker(t, want.ID))
	w.updateWorker(t, model.Worker{Service: service, ID: "b"})
	equal(t, "worker without attributes", model.Worker{Service: service, ID: "b", Version: 1}, w.worker(t, "b"))
}

func testWorkerVersion(t *testing.T, w world) {
	update := func(version int64) error {
		_, err := w.Store.UpdateWorker(t.Context(), model.Worker{Service: service, ID: "a", Version: version})
		return err
	}
	_, err := w.Store.Worker(t.Context(), service, "a")
	wantError(t, "read of none", err, lifecycle.ErrNotFound)
	for _, version := range []int64{-1, 1} {
		wantError(t, "update of none with a version", update(version), lifecycle.ErrConflict)
	}
	first := w.updateWorker(t, fullWorker("a"))
	for _, version := range []int64{-1, 0, 2} {
		wantError(t, "update with another version", update(version), lifecycle.ErrConflict)
	}
	equal(t, "worker", first, w.worker(t, "a"))
	if err := update(1); err != nil {
		t.Fatal(err)
	}
	equal(t, "worker", model.Worker{Service: service, ID: "a", Version: 2}, w.worker(t, "a"))
}

func testWorkers(t *testing.T, w world) {
	ids := []string{"A", "a", "a/b", "b", "task:1"}
	for _, i := range []int{3, 0, 4, 2, 1} {
		w.updateWorker(t, fullWorker(ids[i]))
	}
	other := fullWorker("a")
	other.Service = "render-2"
	w.updateWorker(t, other)
	w.createWork(t, fullWork("a"))
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
	wantError(t, "a token of nobody's", err, lifecycle.ErrPageToken)
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
	equal(t, "version", int64(writers), w.worker(t, "a").Version)
}

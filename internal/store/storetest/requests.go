package storetest

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "requests", tests: []suiteTest{
	{"a request comes back as it was written", testRequestRoundTrip},
	{"an id is taken once in a run", testRequestExists},
	{"an update needs the stored version", testRequestVersion},
	{"rows share nothing with their callers", testRequestAliasing},
	{"the requests of a run come by id", testRequestsOfRun},
}})

func (w world) request(t *testing.T, id string) lifecycle.Request {
	t.Helper()
	q, err := w.Store.Request(t.Context(), repository, runID, id)
	if err != nil {
		t.Fatalf("Request(%s): %v", id, err)
	}
	return q
}

func testRequestRoundTrip(t *testing.T, w world) {
	want := fullRequest("a")
	isFull(t, want)
	isFull(t, want.Spec)
	w.createRequests(t, want)
	got := w.request(t, "a")
	equal(t, "request", want, got)
	isUTC(t, "deadline", got.Deadline)
	if !got.Spec.Equal(want.Spec) {
		t.Error("the spec is not equal any more")
	}

	want = lifecycle.Request{Repository: repository, RunID: runID, RequestID: "empty", Version: 1}
	w.createRequests(t, lifecycle.Request{Repository: repository, RunID: runID, RequestID: "empty", Taken: []lifecycle.Taken{}})
	equal(t, "request without attributes", want, w.request(t, "empty"))
}

func testRequestExists(t *testing.T, w world) {
	w.createRequests(t, fullRequest("a"))
	wantError(t, "second create", w.Store.CreateRequest(t.Context(), lifecycle.Request{
		Repository: repository, RunID: runID, RequestID: "a",
	}), lifecycle.ErrExists)
	equal(t, "request", fullRequest("a"), w.request(t, "a"))

	other := fullRequest("a")
	other.RunID = "another"
	elsewhere := fullRequest("a")
	elsewhere.Repository = "acme/other"
	w.createRequests(t, other, elsewhere)
	equal(t, "request after its namesakes", fullRequest("a"), w.request(t, "a"))
}

func testRequestVersion(t *testing.T, w world) {
	w.createRequests(t, fullRequest("a"))
	want := fullRequest("a")
	want.Taken, want.Launch, want.Outcome = nil, nil, lifecycle.OutcomeShort
	got, err := w.Store.UpdateRequest(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = 2
	equal(t, "what update returns", want, got)
	for _, version := range []int64{-1, 0, 1, 3} {
		stale := fullRequest("a")
		stale.Version = version
		_, err := w.Store.UpdateRequest(t.Context(), stale)
		wantError(t, "update with another version", err, lifecycle.ErrConflict)
	}
	equal(t, "request", want, w.request(t, "a"))

	_, err = w.Store.UpdateRequest(t.Context(), fullRequest("nobody"))
	wantError(t, "update of an unknown request", err, lifecycle.ErrConflict)
	_, err = w.Store.Request(t.Context(), repository, runID, "nobody")
	wantError(t, "read of an unknown request", err, lifecycle.ErrNotFound)
	_, err = w.Store.Request(t.Context(), "acme/other", runID, "a")
	wantError(t, "read in another repository", err, lifecycle.ErrNotFound)
}

func testRequestAliasing(t *testing.T, w world) {
	scribble := func(q lifecycle.Request) {
		q.Taken[0].HostKey, q.Spec.Labels[0], q.Spec.InstanceTypes[0] = "scribbled", "scribbled", "scribbled"
		q.Launch.Token, q.Launch.InstanceTypes[0] = "scribbled", "scribbled"
	}
	q := fullRequest("a")
	w.createRequests(t, q)
	scribble(q)
	equal(t, "request after the caller changed its own", fullRequest("a"), w.request(t, "a"))
	scribble(w.request(t, "a"))
	equal(t, "request after a reader changed its own", fullRequest("a"), w.request(t, "a"))

	q = fullRequest("a")
	updated, err := w.Store.UpdateRequest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	scribble(q)
	scribble(updated)
	want := fullRequest("a")
	want.Version = 2
	equal(t, "request after both sides of an update changed their own", want, w.request(t, "a"))
}

func testRequestsOfRun(t *testing.T, w world) {
	other := fullRequest("d")
	other.Repository = "acme/other"
	w.createRequests(t, fullRequest("c"), fullRequest("a"), fullRequest("b"), other)
	got, err := w.Store.RequestsOfRun(t.Context(), repository, runID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "requests", []lifecycle.Request{fullRequest("a"), fullRequest("b"), fullRequest("c")}, got)
	got, err = w.Store.RequestsOfRun(t.Context(), repository, "another")
	if err != nil || len(got) != 0 {
		t.Errorf("requests of an unknown run: got %d and error %v, want none of either", len(got), err)
	}
}

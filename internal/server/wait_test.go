package server_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// waiting begins a Provision whose host stays silent and returns once it waits
// for it.
func (w *world) waiting(t *testing.T, req *remudav1.ProvisionRequest) <-chan error {
	t.Helper()
	w.store.silent.Store(true)
	answer := make(chan error, 1)
	go func() {
		_, err := w.Provision(t.Context(), req)
		answer <- err
	}()
	w.eventually(t, "a host is created", func() bool { return len(w.created(t)) == 1 })
	return answer
}

func (w *world) created(t *testing.T) []lifecycle.Record {
	t.Helper()
	return w.hostsIn(t, lifecycle.StateCreated)
}

func (w *world) hostsIn(t *testing.T, state lifecycle.State) []lifecycle.Record {
	t.Helper()
	page, err := w.store.ListInstances(t.Context(), lifecycle.Filter{States: []lifecycle.State{state}}, lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

func (w *world) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// requestOf is the request id in the details of an error.
func requestOf(s *status.Status) string {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RequestInfo); ok {
			return info.GetRequestId()
		}
	}
	return ""
}

func TestARequestThatHasBegunOutlastsAnOutage(t *testing.T) {
	w := newWorld(t)
	answer := w.waiting(t, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
	w.store.away.Store(true)
	time.Sleep(300 * time.Millisecond) // well beyond the patience of newWorld
	w.store.silent.Store(false)
	for _, r := range w.created(t) {
		if err := w.store.report(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	w.store.away.Store(false)
	if err := <-answer; err != nil {
		t.Errorf("the answer is %v, want a host", err)
	}
}

func TestACallThatOnlyReadHasNotBegun(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: "1"}); err != nil {
		t.Fatal(err)
	}
	w.store.requestsFull.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true})(ctx, w)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("a release that cannot be written: %v, want UNAVAILABLE with the reason", err)
	}
	w.store.requestsFull.Store(false)
	if err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true})(ctx, w); err != nil {
		t.Errorf("the same release with space again: %v", err)
	}
}

// What cannot be ended in time says what kept it. The answer must reach its
// caller before the caller's own clock ends the call, which a busy machine may
// miss now and then.
func TestTheDeadlineSaysWhatKeptTheCall(t *testing.T) {
	w := newWorld(t)
	for n := range 20 {
		run := strconv.Itoa(n)
		if _, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run}); err != nil {
			t.Fatal(err)
		}
		w.store.hostsFull.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: run})(ctx, w)
		cancel()
		w.store.hostsFull.Store(false)
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("a release that cannot be finished: %v, want DEADLINE_EXCEEDED", err)
		}
		if strings.Contains(err.Error(), "free some space") {
			return
		}
	}
	t.Error("no answer said what kept the call")
}

// The answer must reach its caller before the connection is cut, for which a
// busy machine may take too long now and then.
func TestAWaitingCallIsHandedOver(t *testing.T) {
	var s *status.Status
	for range 10 {
		w := newWorld(t)
		answer := w.waiting(t, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
		w.stopWithin(50 * time.Millisecond)
		if s = status.Convert(<-answer); s.Code() != codes.Unavailable {
			t.Fatalf("the answer is %v, want UNAVAILABLE", s)
		}
		if !strings.Contains(s.Message(), "stopping") {
			continue
		}
		id := requestOf(s)
		if q, err := w.store.Request(t.Context(), repository, "1", id); err != nil || q.Settled() {
			t.Errorf("request %q is %v (%v), want it open for another replica", id, q, err)
		}
		return
	}
	t.Errorf("the answer is %v, want that controld is stopping", s)
}

func TestTheRequestsIDIsTold(t *testing.T) {
	w := newWorld(t)
	_, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{
		Repository: repository, RunId: "1", AllowedInstanceTypes: []string{scarce}, Timeout: durationpb.New(time.Second),
	})
	id := requestOf(status.Convert(err))
	if len(id) != 32 {
		t.Fatalf("the id of the request is %q in %v, want 32 hex digits", id, err)
	}
	w.eventually(t, "the call is logged", func() bool { return strings.Contains(w.log.String(), "request="+id) })
	if _, err := w.store.Request(t.Context(), repository, "1", id); err != nil {
		t.Errorf("the store has no request %s: %v", id, err)
	}
}

func TestTheCallersDeadlineIsNotTheRequests(t *testing.T) {
	w := newWorld(t)
	w.store.silent.Store(true)
	for id, deadline := 0, 200*time.Millisecond; deadline < time.Minute; id, deadline = id+1, 2*deadline {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		_, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1", RequestId: strconv.Itoa(id)})
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("got %v, want DEADLINE_EXCEEDED", err)
		}
		q, err := w.store.Request(t.Context(), repository, "1", strconv.Itoa(id))
		if errors.Is(err, lifecycle.ErrNotFound) {
			continue // it was too short for a busy machine: nothing had begun
		}
		if err != nil || q.Settled() {
			t.Errorf("the request is %v (%v), want it open", q, err)
		}
		return
	}
	t.Error("no call got as far as its request")
}

func TestNoSecretIsLogged(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	if _, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "both calls are logged", func() bool { return strings.Contains(w.log.String(), "FleetService/Release") })
	if log := w.log.String(); strings.Contains(log, "secret-") || !strings.Contains(log, "run=1") || !strings.Contains(log, "code=OK") {
		t.Errorf("the log lacks run or code, or has a secret:\n%s", log)
	}
}

func TestHealthFollowsTheStore(t *testing.T) {
	w := newWorld(t)
	w.store.away.Store(true)
	w.eventually(t, "not serving while the store is away", func() bool { return w.health(t) == healthv1.HealthCheckResponse_NOT_SERVING })
	w.store.away.Store(false)
	w.eventually(t, "serving again", func() bool { return w.health(t) == healthv1.HealthCheckResponse_SERVING })
}

func (w *world) health(t *testing.T) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	got, err := healthv1.NewHealthClient(w.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetStatus()
}

func TestWatchersAreBounded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		w.watching(ctx, t, "")
	}
	if err := watch("1")(t.Context(), w); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v, want RESOURCE_EXHAUSTED", err)
	}
	cancel()
	w.eventually(t, "there is room again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return status.Code(watch("1")(ctx, w)) == codes.DeadlineExceeded
	})
}

// No sweep runs here, so that nothing else pools the host.
func TestAReleaseWithoutWaitIsFollowed(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: "1"}); err != nil {
		t.Fatal(err)
	}
	w.store.silent.Store(true)
	released, err := w.Release(t.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: "1"})
	if err != nil || len(released.GetInstances()) != 1 || released.GetPooledCount() != 0 {
		t.Fatalf("released %v, %v", released, err)
	}
	w.store.silent.Store(false)
	key := released.GetInstances()[0].GetInstanceId()
	record := func() lifecycle.Record {
		r, err := w.store.Instance(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := w.store.report(t.Context(), record()); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the host is pooled", func() bool { return record().Pooled() })
}

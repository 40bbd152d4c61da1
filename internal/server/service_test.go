package server_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestALife(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	cold, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1", InstanceCount: proto.Int32(2)})
	if err != nil {
		t.Fatal(err)
	}
	if cold.GetCreatedCount() != 2 || cold.GetReusedCount() != 0 || len(cold.GetInstances()) != 2 || cold.GetRequestId() == "" {
		t.Errorf("cold: %v", cold)
	}
	first := cold.GetInstances()[0]
	if first.GetState() != remudav1.State_STATE_RUNNING || first.GetRunId() != "1" || first.GetSignal() != remudav1.Signal_SIGNAL_UD_REG_OK || !first.GetHealthy() {
		t.Errorf("a cold host: %v", first)
	}
	again, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1", InstanceCount: proto.Int32(2), RequestId: cold.GetRequestId()})
	if err != nil || len(again.GetInstances()) != 2 || again.GetInstances()[0].GetInstanceId() != first.GetInstanceId() {
		t.Errorf("the same request again: %v, %v", again, err)
	}
	released, err := w.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true})
	if err != nil || released.GetPooledCount() != 2 {
		t.Fatalf("release: %v, %v", released, err)
	}
	pools, err := w.ListPools(ctx, &remudav1.ListPoolsRequest{})
	if err != nil || len(pools.GetPools()) != 2 || pools.GetPools()[0].GetPooledCount() != 2 {
		t.Errorf("pools: %v, %v", pools, err)
	}
	warm, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "2", InstanceCount: proto.Int32(2)})
	if err != nil || warm.GetReusedCount() != 2 {
		t.Errorf("warm: %v, %v", warm, err)
	}
	explained, err := w.ExplainRun(ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: "2"})
	if err != nil || len(explained.GetSentences()) < 3 || len(explained.GetEvents()) < 3 {
		t.Errorf("explain: %v, %v", explained, err)
	}
	for _, e := range explained.GetEvents() {
		if e.GetAction() == remudav1.Action_ACTION_UNSPECIFIED || e.GetReason() == "" {
			t.Errorf("an event without action or reason: %v", e)
		}
	}
}

func TestListInstancesPages(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	if _, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1", InstanceCount: proto.Int32(5)}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for token := ""; ; {
		page, err := w.ListInstances(ctx, &remudav1.ListInstancesRequest{PageSize: 2, PageToken: token, States: []remudav1.State{remudav1.State_STATE_RUNNING}})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.GetInstances() {
			seen[i.GetInstanceId()] = true
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("listed %d hosts, want 5", len(seen))
	}
}

func TestListPoolsPages(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	var names []string
	for token := ""; ; {
		page, err := w.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: 1, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.GetPools() {
			names = append(names, p.GetName())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"default", "spare"}, names); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	// A page with all of them is the last one.
	if whole, err := w.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: 2}); err != nil || len(whole.GetPools()) != 2 || whole.GetNextPageToken() != "" {
		t.Errorf("a page of two: %v, %v", whole, err)
	}
}

// A pool that the configuration has no longer is listed at its place among the others.
func TestListPoolsWithARemovedPool(t *testing.T) {
	f := newFieldWorld(t)
	left := serving("i-9")
	left.Pool = "a-former-one"
	f.host(left, lifecycle.Report{})
	got, err := f.ListPools(t.Context(), &remudav1.ListPoolsRequest{})
	f.must(err)
	var listed []string
	for _, p := range got.GetPools() {
		listed = append(listed, fmt.Sprint(p.GetName(), " ", p.GetRemoved()))
	}
	if diff := cmp.Diff([]string{"a-former-one true", "default false", "full false", "spare false"}, listed); diff != "" {
		t.Errorf("pools, and whether they are removed (-want +got):\n%s", diff)
	}
}

func TestCallsAreCounted(t *testing.T) {
	w := newWorld(t)
	if err := getInstance("i-none")(t.Context(), w); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	if n := w.counts.of(remudav1.FleetService_GetInstance_FullMethodName, codes.NotFound); n != 1 {
		t.Errorf("counted %d calls, want 1", n)
	}
}

func TestGitHubDownIsUnavailable(t *testing.T) {
	w := newWorld(t)
	w.github.down.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
	s := status.Convert(err)
	if s.Code() != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	for _, d := range s.Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok && retry.GetRetryDelay().AsDuration() == 7*time.Second {
			return
		}
	}
	t.Errorf("no retry info of 7 s in %v", s.Details())
}

func TestAnotherBodyAlreadyExists(t *testing.T) {
	w := newWorld(t)
	for i, want := range []codes.Code{codes.OK, codes.AlreadyExists} {
		_, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{
			Repository: repository, RunId: "1", RequestId: "same", InstanceCount: proto.Int32(int32(i + 1)),
		})
		if status.Code(err) != want {
			t.Errorf("call %d: %v, want %s", i, err, want)
		}
	}
}

// A runtime that a caller asks for is part of the request: the same id with another one is another request.
func TestAnotherRuntimeAlreadyExists(t *testing.T) {
	w := newWorld(t)
	for hours, want := range []codes.Code{codes.OK, codes.AlreadyExists} {
		_, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{
			Repository: repository, RunId: "1", RequestId: "same", MaxRuntime: durationpb.New(time.Duration(hours+1) * time.Hour),
		})
		if status.Code(err) != want {
			t.Errorf("with %d hours: %v, want %s", hours+1, err, want)
		}
	}
}

func TestAHeldHostIsNotEnded(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	got, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
	if err != nil {
		t.Fatal(err)
	}
	id := got.GetInstances()[0].GetInstanceId()
	held, err := w.HoldInstance(ctx, &remudav1.HoldInstanceRequest{InstanceId: id, Duration: durationpb.New(time.Hour), Reason: "looking"})
	if err != nil || held.GetInstance().GetHoldTime() == nil {
		t.Fatalf("hold: %v, %v", held, err)
	}
	end := &remudav1.TerminateInstanceRequest{InstanceId: id, Reason: "test"}
	if _, err := w.TerminateInstance(ctx, end); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("terminate a held host: %v, want FAILED_PRECONDITION", err)
	}
	if _, err := w.HoldInstance(ctx, &remudav1.HoldInstanceRequest{InstanceId: id, Duration: durationpb.New(0), Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.TerminateInstance(ctx, end); err != nil || got.GetInstance().GetState() != remudav1.State_STATE_TERMINATED {
		t.Errorf("terminate: %v, %v", got, err)
	}
}

func TestAPanicIsAnErrorOfOneCall(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.store.panics.Store(true)
	err := getInstance("i-1")(ctx, w)
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "mad") {
		t.Errorf("got %v, want INTERNAL without its cause", err)
	}
	w.store.panics.Store(false)
	if err := getInstance("i-1")(ctx, w); status.Code(err) != codes.NotFound {
		t.Errorf("the call after a panic: %v, want NOT_FOUND", err)
	}
}

// watching is a watch of a run, or of all, that has begun.
func (w *world) watching(ctx context.Context, t *testing.T, run string) grpc.ServerStreamingClient[remudav1.WatchFleetResponse] {
	t.Helper()
	stream, err := w.WatchFleet(ctx, &remudav1.WatchFleetRequest{RunId: run})
	if err == nil {
		_, err = stream.Header() // sent once the watch has begun
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestWatchFleetTellsWhatHappensFromNowOn(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "2", RequestId: "before"}); err != nil {
		t.Fatal(err)
	}
	stream := w.watching(ctx, t, "2")
	for _, run := range []string{"1", "2"} {
		if _, err := w.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: run}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := stream.Recv()
	if err != nil || got.GetEvent().GetRunId() != "2" || got.GetEvent().GetAction() != remudav1.Action_ACTION_LAUNCH || got.GetEvent().GetRequestId() == "before" {
		t.Errorf("the first event is %v (%v), want the second launch for run 2", got, err)
	}
	w.stop() // ends the stream instead of waiting for it
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "watch again") {
		t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
	}
}

// A watcher gets all that happened between two looks.
func TestWatchFleetTellsOfAllEventsOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stream := w.watching(t.Context(), t, "")
		synctest.Wait()
		var events []lifecycle.Event
		for i, run := range []string{"1", "2", "3"} {
			events = append(events, lifecycle.Event{ID: strconv.Itoa(i), At: time.Now(), RunID: run, Action: lifecycle.ActionClaim})
		}
		if err := w.store.AddEvents(t.Context(), events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if got, err := stream.Recv(); err != nil || got.GetEvent().GetRunId() != e.RunID {
				t.Errorf("got %v (%v), want the event of run %s", got, err, e.RunID)
			}
		}
	})
}

// A watcher gets each event once, within half a second.
func TestWatchFleetTellsOfAnEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stream := w.watching(t.Context(), t, "")
		for _, run := range []string{"1", "2", "3"} {
			synctest.Wait()
			began := time.Now()
			if err := w.store.AddEvents(t.Context(), []lifecycle.Event{{ID: run, At: began, RunID: run, Action: lifecycle.ActionClaim}}); err != nil {
				t.Fatal(err)
			}
			got, err := stream.Recv()
			if took := time.Since(began); err != nil || got.GetEvent().GetRunId() != run || took != 500*time.Millisecond {
				t.Errorf("got %v (%v) after %s, want the event of run %s after 0.5 s", got, err, took, run)
			}
		}
	})
}

// A load balancer asks for health each few seconds: the log has that for debugging only.
func TestWhichCallsTheLogHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.health(t)
		if err := getInstance("i-none")(t.Context(), w); status.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, line := range []string{
			"[DEBUG] rpc finished: method=/grpc.health.v1.Health/Check code=OK took=0s address=bufconn\n",
			"[INFO]  rpc finished: method=/remuda.v1.FleetService/GetInstance code=NotFound took=0s address=bufconn caller=loopback instance=i-none error=\"instance i-none: not found\"\n",
		} {
			if !strings.Contains(w.log.String(), line) {
				t.Errorf("no %q in\n%s", line, w.log)
			}
		}
	})
}

// A stream is counted and logged once it has ended.
func TestStreamsAreCountedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1200*time.Millisecond, cancel)
		if err := watch("1")(ctx, w); status.Code(err) != codes.Canceled {
			t.Fatal(err)
		}
		synctest.Wait()
		const method = remudav1.FleetService_WatchFleet_FullMethodName
		if n := w.counts.of(method, codes.Canceled); n != 1 {
			t.Errorf("counted %d streams, want 1", n)
		}
		line := "[INFO]  rpc finished: method=" + method + " code=Canceled took=1.2s address=bufconn caller=loopback error=\"context canceled\"\n"
		if !strings.Contains(w.log.String(), line) {
			t.Errorf("no %q in\n%s", line, w.log)
		}
	})
}

func TestHealthAndReflection(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	service := remudav1.FleetService_ServiceDesc.ServiceName
	deadline := time.Now().Add(5 * time.Minute)
	serves := func(name string) bool {
		got, err := healthv1.NewHealthClient(w.conn).Check(ctx, &healthv1.HealthCheckRequest{Service: name})
		if time.Now().After(deadline) {
			t.Fatalf("health of %q: %v, %v", name, got, err)
		}
		return err == nil && got.GetStatus() == healthv1.HealthCheckResponse_SERVING
	}
	for _, name := range []string{"", service, remudav1.WorkerService_ServiceDesc.ServiceName} {
		for !serves(name) {
		}
	}
	stream, err := reflectionv1.NewServerReflectionClient(w.conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	got, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got.GetListServicesResponse().GetService() {
		if s.GetName() == service {
			return
		}
	}
	t.Errorf("reflection does not list %s: %v", service, got)
}

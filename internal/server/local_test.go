package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// A viewer in this process reads, may change nothing, and is checked, logged and counted as callers are that come by the network.
func TestViewerInTheProcess(t *testing.T) {
	t.Parallel()
	f := newFieldWorld(t)
	hostOf7(f)
	ctx, viewer := context.Background(), remudav1.NewFleetServiceClient(f.server.Viewer("the page"))
	got, err := viewer.GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: "i-1"})
	if err != nil || got.GetInstance().GetRunId() != "7" {
		t.Errorf("host i-1: %v %v", got, err)
	}
	wants := func(what string, err error, code codes.Code, says string) {
		t.Helper()
		if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = viewer.GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: "i 1"})
	wants("an id that is none", err, codes.InvalidArgument, "instance_id")
	_, err = viewer.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: "i-1", Reason: "x"})
	wants("a change", err, codes.PermissionDenied, "the page may not call TerminateInstance: it has the role viewer")
	_, err = viewer.PausePool(ctx, &remudav1.PausePoolRequest{Pool: "default"})
	wants("another change", err, codes.PermissionDenied, "the page may not call PausePool")
	_, err = viewer.WatchFleet(ctx, &remudav1.WatchFleetRequest{})
	wants("a stream", err, codes.Unimplemented, "WatchFleet is a stream")
	wants("no call", f.server.Viewer("x").Invoke(ctx, "/remuda.v1.FleetService/None", got, got), codes.Unimplemented, "there is no call")
	if text := f.log.String(); !strings.Contains(text, "GetInstance code=OK") || !strings.Contains(text, "caller=\"the page\" instance=i-1") || !strings.Contains(text, "TerminateInstance code=PermissionDenied") {
		t.Errorf("the log has\n%s", text)
	}
}

// An answer in this process has every field that it has by the network.
func TestAnAnswerInTheProcessIsWhole(t *testing.T) {
	t.Parallel()
	f := newFieldWorld(t)
	inOrder(hostOf7, hotHost)(f)
	req := &remudav1.ListInstancesRequest{PageSize: 1}
	want, err := f.ListInstances(t.Context(), req)
	f.must(err)
	got, err := remudav1.NewFleetServiceClient(f.server.Viewer("the page")).ListInstances(t.Context(), req)
	f.must(err)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || len(want.GetInstances()) != 1 || want.GetNextPageToken() == "" {
		t.Errorf("in the process (-by the network +in the process):\n%s", diff)
	}
}

// A workflow in this process is held to what it may do by the network: its own run, by a token that is good once.
func TestWorkflowInTheProcess(t *testing.T) {
	t.Parallel()
	c := newCI(t, rule())
	ctx, token := context.Background(), c.issuer.Token(nil)
	call := func(token string) remudav1.FleetServiceClient {
		return remudav1.NewFleetServiceClient(c.server.Workflow(token))
	}
	own := &remudav1.ExplainRunRequest{Repository: repository, RunId: "42"}
	if _, err := call(token).ExplainRun(ctx, own); status.Code(err) != codes.NotFound {
		t.Errorf("its own run: %v", err)
	}
	if _, err := call(token).ExplainRun(ctx, own); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "was used before") {
		t.Errorf("the same token again: %v", err)
	}
	if _, err := call(c.issuer.Token(nil)).ExplainRun(ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: "1"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another run: %v", err)
	}
	if _, err := call(c.issuer.Token(nil)).ListPools(ctx, &remudav1.ListPoolsRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("pools: %v", err)
	}
	if _, err := call("x.y.z").ExplainRun(ctx, own); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that is none: %v", err)
	}
}

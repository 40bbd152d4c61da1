package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// wire is a bad call: what is wrong with it, and the answer of its caller.
type wire struct {
	call  func(ctx context.Context, w *world) error
	code  codes.Code
	field string
	says  string
}

func provision(change func(*remudav1.ProvisionRequest)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		req := &remudav1.ProvisionRequest{Repository: repository, RunId: "1", Timeout: durationpb.New(time.Second)}
		change(req)
		_, err := w.Provision(ctx, req)
		return err
	}
}

func TestBadCalls(t *testing.T) {
	tests := map[string]wire{
		"no repository":        {call: provision(func(r *remudav1.ProvisionRequest) { r.Repository = "" }), code: codes.InvalidArgument, field: "repository"},
		"bad repository":       {call: provision(func(r *remudav1.ProvisionRequest) { r.Repository = "acme" }), code: codes.InvalidArgument, field: "repository"},
		"no run":               {call: provision(func(r *remudav1.ProvisionRequest) { r.RunId = "" }), code: codes.InvalidArgument, field: "run_id"},
		"too many":             {call: provision(func(r *remudav1.ProvisionRequest) { r.InstanceCount = proto.Int32(201) }), code: codes.InvalidArgument, field: "instance_count"},
		"minimum":              {call: provision(func(r *remudav1.ProvisionRequest) { r.MinimumCount = proto.Int32(2) }), code: codes.InvalidArgument, field: "minimum_count"},
		"unknown pool":         {call: provision(func(r *remudav1.ProvisionRequest) { r.Pool = "nope" }), code: codes.InvalidArgument, field: "pool", says: "default"},
		"unknown class":        {call: provision(func(r *remudav1.ProvisionRequest) { r.ResourceClass = "nope" }), code: codes.InvalidArgument, field: "resource_class", says: "large"},
		"bad pattern":          {call: provision(func(r *remudav1.ProvisionRequest) { r.AllowedInstanceTypes = []string{"c6i/large"} }), code: codes.InvalidArgument, field: "allowed_instance_types[0]"},
		"long timeout":         {call: provision(func(r *remudav1.ProvisionRequest) { r.Timeout = durationpb.New(time.Hour) }), code: codes.InvalidArgument, field: "timeout", says: "less than or equal to 30m"},
		"unknown usage":        {call: provision(func(r *remudav1.ProvisionRequest) { r.UsageClass = 9 }), code: codes.InvalidArgument, field: "usage_class"},
		"attempt zero":         {call: provision(func(r *remudav1.ProvisionRequest) { r.RunAttempt = proto.Int32(0) }), code: codes.InvalidArgument, field: "run_attempt"},
		"no time to run":       {call: provision(func(r *remudav1.ProvisionRequest) { r.MaxRuntime = durationpb.New(0) }), code: codes.InvalidArgument, field: "max_runtime"},
		"negative timeout":     {call: provision(func(r *remudav1.ProvisionRequest) { r.Timeout = durationpb.New(-time.Hour) }), code: codes.InvalidArgument, field: "timeout"},
		"bad label":            {call: provision(func(r *remudav1.ProvisionRequest) { r.Labels = []string{"a,b"} }), code: codes.InvalidArgument, field: "labels[0]"},
		"bad request id":       {call: provision(func(r *remudav1.ProvisionRequest) { r.RequestId = "a b" }), code: codes.InvalidArgument, field: "request_id"},
		"release no run":       {call: release(&remudav1.ReleaseRequest{Repository: repository}), code: codes.InvalidArgument, field: "run_id"},
		"release nowhere":      {call: release(&remudav1.ReleaseRequest{RunId: "1"}), code: codes.InvalidArgument, field: "repository"},
		"release attempt zero": {call: release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1", RunAttempt: proto.Int32(0)}), code: codes.InvalidArgument, field: "run_attempt"},
		"end an unknown host":  {call: terminate("i-none", ""), code: codes.NotFound, says: "i-none"},
		"end for a novel":      {call: terminate("i-1", strings.Repeat("x", 513)), code: codes.InvalidArgument, field: "reason"},
		"hold an unknown host": {call: hold(time.Hour), code: codes.NotFound, says: "i-1"},
		"pools, bad token":     {call: pools(&remudav1.ListPoolsRequest{PageToken: "?"}), code: codes.InvalidArgument, field: "page_token"},
		"pools, bad size":      {call: pools(&remudav1.ListPoolsRequest{PageSize: 1001}), code: codes.InvalidArgument, field: "page_size"},
		"no such type":         {call: provision(func(r *remudav1.ProvisionRequest) { r.AllowedInstanceTypes = []string{"z9.*"} }), code: codes.InvalidArgument, field: "allowed_instance_types", says: "z9.*"},
		"no capacity":          {call: provision(func(r *remudav1.ProvisionRequest) { r.AllowedInstanceTypes = []string{scarce} }), code: codes.ResourceExhausted, says: "0 of 1"},
		"unknown host":         {call: getInstance("i-none"), code: codes.NotFound, says: "i-none"},
		"no host":              {call: getInstance(""), code: codes.InvalidArgument, field: "instance_id"},
		"unknown run":          {call: explain("404"), code: codes.NotFound, says: "404"},
		"hold too long":        {call: hold(25 * time.Hour), code: codes.InvalidArgument, field: "duration"},
		"bad page token":       {call: list(&remudav1.ListInstancesRequest{PageToken: "?"}), code: codes.InvalidArgument, field: "page_token"},
		"bad page size":        {call: list(&remudav1.ListInstancesRequest{PageSize: -1}), code: codes.InvalidArgument, field: "page_size"},
		"unknown state":        {call: list(&remudav1.ListInstancesRequest{States: []remudav1.State{77}}), code: codes.InvalidArgument, field: "states[0]"},
		"list a bad class":     {call: list(&remudav1.ListInstancesRequest{ResourceClass: "no class!"}), code: codes.InvalidArgument, field: "resource_class"},
		"list a bad run":       {call: list(&remudav1.ListInstancesRequest{RunId: "%"}), code: codes.InvalidArgument, field: "run_id"},
		"end no host":          {call: terminate("", "test"), code: codes.InvalidArgument, field: "instance_id"},
		"a negative hold":      {call: hold(-time.Hour), code: codes.InvalidArgument, field: "duration"},
		"explain a bad run":    {call: explain("%"), code: codes.InvalidArgument, field: "run_id"},
		"a class with blanks":  {call: provision(func(r *remudav1.ProvisionRequest) { r.ResourceClass = "no class!" }), code: codes.InvalidArgument, field: "resource_class"},
		"a pool with blanks":   {call: provision(func(r *remudav1.ProvisionRequest) { r.Pool = "no pool!" }), code: codes.InvalidArgument, field: "pool"},
		"nothing at all":       {call: provision(func(r *remudav1.ProvisionRequest) { r.InstanceCount = proto.Int32(0) }), code: codes.InvalidArgument, field: "instance_count"},
		"an endless run":       {call: provision(func(r *remudav1.ProvisionRequest) { r.MaxRuntime = durationpb.New(121 * time.Hour) }), code: codes.InvalidArgument, field: "max_runtime"},
		"too many labels":      {call: provision(func(r *remudav1.ProvisionRequest) { r.Labels = strings.Split(strings.Repeat("x", 21), "") }), code: codes.InvalidArgument, field: "labels"},
		"plan what is over":    {call: planAt(-61 * time.Second), code: codes.InvalidArgument, field: "decide_time", says: "is over; it is 2"},
		"plan too far ahead":   {call: planAt(8 * 24 * time.Hour), code: codes.InvalidArgument, field: "decide_time", says: "more than 7 days ahead"},
		"pause no pool":        {call: pausePool("nope"), code: codes.NotFound, says: `there is no pool "nope"; configured: [default spare]`},
		"resume no pool":       {call: resumePool("nope"), code: codes.NotFound, says: `there is no pool "nope"; configured: [default spare]`},
		"watch a bad run":      {call: watch("%"), code: codes.InvalidArgument, field: "run_id"},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.call(t.Context(), w)
			s := status.Convert(err)
			if s.Code() != tt.code || !strings.Contains(s.Message(), tt.field) || !strings.Contains(s.Message(), tt.says) {
				t.Errorf("got %v, want %s naming %q and %q", err, tt.code, tt.field, tt.says)
			}
			if tt.field != "" && violated(s) != tt.field {
				t.Errorf("the violated field is %q, want %q", violated(s), tt.field)
			}
		})
	}
}

// violated is the first field that the details of a status name.
func violated(s *status.Status) string {
	for _, d := range s.Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

func getInstance(id string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: id})
		return err
	}
}

func explain(run string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.ExplainRun(ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: run})
		return err
	}
}

func hold(d time.Duration) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.HoldInstance(ctx, &remudav1.HoldInstanceRequest{InstanceId: "i-1", Duration: durationpb.New(d), Reason: "test"})
		return err
	}
}

func release(req *remudav1.ReleaseRequest) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.Release(ctx, req)
		return err
	}
}

func terminate(id, reason string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: id, Reason: reason})
		return err
	}
}

func pools(req *remudav1.ListPoolsRequest) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.ListPools(ctx, req)
		return err
	}
}

func planAt(ahead time.Duration) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.PlanScaleDown(ctx, &remudav1.PlanScaleDownRequest{DecideTime: timestamppb.New(time.Now().Add(ahead))})
		return err
	}
}

func pausePool(pool string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.PausePool(ctx, &remudav1.PausePoolRequest{Pool: pool, Reason: "test"})
		return err
	}
}

func resumePool(pool string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.ResumePool(ctx, &remudav1.ResumePoolRequest{Pool: pool, Reason: "test"})
		return err
	}
}

func list(req *remudav1.ListInstancesRequest) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		_, err := w.ListInstances(ctx, req)
		return err
	}
}

func watch(run string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		stream, err := w.WatchFleet(ctx, &remudav1.WatchFleetRequest{RunId: run})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
}

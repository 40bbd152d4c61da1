package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// admissions are the decisions in the log, in order.
func (w *world) admissions() (all []string) {
	for line := range strings.Lines(w.log.String()) {
		if _, decision, found := strings.Cut(line, "[INFO]  admission: "); found {
			all = append(all, strings.TrimSuffix(decision, "\n"))
		}
	}
	return all
}

// The log says of each call who made it, whether it is let in, and why.
func TestEachCallsAdmissionIsLogged(t *testing.T) {
	heartbeat := func(service string) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			_, err := remudav1.NewWorkerServiceClient(w.conn).Heartbeat(ctx, &remudav1.HeartbeatRequest{Service: service, WorkerId: "w"})
			return err
		}
	}
	listPools := pools(&remudav1.ListPoolsRequest{})
	of := func(run, host string) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			req := &remudav1.ExplainRunRequest{InstanceId: host}
			if run != "" {
				req.Repository, req.RunId = repository, run
			}
			_, err := w.ExplainRun(ctx, req)
			return err
		}
	}
	const fleet, workers = "method=/remuda.v1.FleetService/", "method=/remuda.v1.WorkerService/"
	const run42, worker = ` caller="run 42 of acme/app, attempt 1"`, ` caller="a worker of render"`
	const letIn = ` decision=allowed reason="its ID token is good, and its repository has a rule"`
	for name, tt := range map[string]struct {
		token string
		call  func(context.Context, *world) error
		code  codes.Code
		want  []string
	}{
		"an operator": {"", listPools, codes.OK, []string{fleet + `ListPools caller=loopback decision=allowed reason="it has the role admin"`}},
		"a workflow":  {"x", of("42", ""), codes.NotFound, []string{fleet + "ExplainRun" + run42 + letIn + " repository=acme/app run=42"}},
		"a workflow, about a method that is not for it": {"x", listPools, codes.PermissionDenied, []string{
			fleet + "ListPools" + run42 + ` decision=refused reason="a workflow may call Provision, Release and ExplainRun of its own run, and not ListPools"`,
		}},
		"a workflow, about another's host": {"x", of("", "i-1"), codes.PermissionDenied, []string{
			fleet + "ExplainRun" + run42 + letIn + " instance=i-1",
			fleet + "ExplainRun" + run42 + ` decision=refused reason="instance_id: i-1 does not serve run 42 of acme/app, which is the ID token's" instance=i-1`,
		}},
		"a worker":          {renderToken, heartbeat("render"), codes.OK, []string{workers + "Heartbeat" + worker + ` decision=allowed reason="its worker token is good" service=render worker=w`}},
		"an unknown caller": {"y", heartbeat("render"), codes.Unauthenticated, []string{workers + `Heartbeat caller="" decision=refused reason="the token is not the worker token of a service" service=render worker=w`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, server.Callers{
					Tokens: unsure{}, Rules: policy.Rules{rule()}, Once: func(context.Context, string, string, time.Time) error { return nil }, Workers: workerTokens(),
				})
				ctx := t.Context()
				if tt.token != "" {
					ctx = as(ctx, tt.token)
				}
				if err := tt.call(ctx, w); status.Code(err) != tt.code {
					t.Fatalf("got %v, want %s", err, tt.code)
				}
				if diff := cmp.Diff(tt.want, w.admissions()); diff != "" {
					t.Errorf("admissions (-want +got):\n%s", diff)
				}
			})
		})
	}
}

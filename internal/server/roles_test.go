package server_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// least is the role that each method needs. A method that is not here fails
// the test: who adds one says whose it is.
var least = map[string]policy.Role{
	"GetInstance": policy.RoleViewer, "ListInstances": policy.RoleViewer, "ListPools": policy.RoleViewer,
	"WatchFleet": policy.RoleViewer, "ExplainRun": policy.RoleViewer, "ListServices": policy.RoleViewer, "GetCost": policy.RoleViewer, "ListBudgets": policy.RoleViewer, "GetStatus": policy.RoleViewer, "ListWaiting": policy.RoleViewer, "PlanScaleDown": policy.RoleViewer, "ListEvents": policy.RoleViewer, "NudgeService": policy.RoleOperator, "HoldFleet": policy.RoleAdmin,
	"Provision": policy.RoleOperator, "Release": policy.RoleOperator, "Refresh": policy.RoleOperator, "HoldInstance": policy.RoleOperator, "Drain": policy.RoleOperator, "DropCache": policy.RoleOperator,
	"PausePool": policy.RoleOperator, "ResumePool": policy.RoleOperator,
	"TerminateInstance": policy.RoleAdmin,
}

// methods are all of the service, and whether they stream.
func methods() map[string]bool {
	all := map[string]bool{}
	for _, m := range remudav1.FleetService_ServiceDesc.Methods {
		all[m.MethodName] = false
	}
	for _, s := range remudav1.FleetService_ServiceDesc.Streams {
		all[s.StreamName] = true
	}
	return all
}

// call sends an empty request to a method by its name and waits for an answer,
// or, of a stream, for its header.
func call(ctx context.Context, conn *grpc.ClientConn, method string, streams bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	name := "/" + remudav1.FleetService_ServiceDesc.ServiceName + "/" + method
	if !streams {
		return conn.Invoke(ctx, name, &emptypb.Empty{}, &emptypb.Empty{})
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
	if err != nil {
		return err
	}
	if err := errors.Join(stream.SendMsg(&emptypb.Empty{}), stream.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if header, err := stream.Header(); err != nil || header != nil {
		return err // a watch has begun
	}
	return stream.RecvMsg(&emptypb.Empty{})
}

// passed reports whether a call got beyond admission.
func passed(err error) bool {
	code := status.Code(err)
	return code != codes.PermissionDenied && code != codes.Unauthenticated && code != codes.Unavailable && code != codes.Unimplemented
}

func TestRolesByMethod(t *testing.T) {
	ours := newAuthority(t, "ours")
	cert, key := ours.issue("controld")
	config, err := server.LoadTLS(cert, key, ours.file)
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTLS(t, config, server.Callers{Operators: operators})
	for _, role := range policy.Roles {
		conn := dial(t, addr, ours.client(ours, string(role)))
		for method, streams := range methods() {
			t.Run(string(role)+" "+method, func(t *testing.T) {
				want, known := least[method]
				if !known {
					t.Fatalf("%s has no role", method)
				}
				err := call(t.Context(), conn, method, streams)
				if passed(err) != role.Includes(want) {
					t.Errorf("got %v; %s is for %s", err, method, want)
				}
				if !role.Includes(want) && !strings.Contains(status.Convert(err).Message(), "needs "+string(want)) {
					t.Errorf("got %v, want it to say the role %s", err, want)
				}
			})
		}
	}
	t.Run("without a certificate", func(t *testing.T) {
		conn := dial(t, addr, ours.client(nil, ""))
		for method, streams := range methods() {
			if err := call(t.Context(), conn, method, streams); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: got %v", method, err)
			}
		}
		if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("health: %v", err)
		}
	})
}

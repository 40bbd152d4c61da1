package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// localConn calls the FleetService in this process, as one caller. A call passes what all calls pass, except the network: it is validated,
// bounded, logged and counted, and the caller has a role. There are no streams.
type localConn struct {
	edge  *interceptors
	fleet *service
	from  caller
}

// Viewer calls the FleetService as a caller with the role viewer, who has a name in the log.
func (s *Server) Viewer(name string) grpc.ClientConnInterface {
	return &localConn{edge: s.workers.edge, fleet: s.service, from: caller{name: name, role: policy.RoleViewer}}
}

// Invoke makes a call.
func (c *localConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	for _, m := range remudav1.FleetService_ServiceDesc.Methods {
		if "/"+remudav1.FleetService_ServiceDesc.ServiceName+"/"+m.MethodName != method {
			continue
		}
		read := func(req any) error {
			proto.Merge(req.(proto.Message), args.(proto.Message))
			return nil
		}
		resp, err := m.Handler(c.fleet, ctx, read, c.admitted)
		if err != nil {
			return err
		}
		proto.Merge(reply.(proto.Message), resp.(proto.Message))
		return nil
	}
	return status.Errorf(codes.Unimplemented, "there is no call %s", method)
}

// admitted passes a call through what all calls pass.
func (c *localConn) admitted(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return c.edge.handle(ctx, req, info.FullMethod, next, func(ctx context.Context) error {
		*callerOf(ctx) = c.from
		return c.from.mayCall(info.FullMethod)
	})
}

// NewStream is not offered.
func (c *localConn) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "%s is a stream: call it over the network", method)
}

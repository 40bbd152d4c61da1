package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// localConn calls the FleetService in this process, as one caller. A call passes what all calls pass, except the network: it is validated,
// bounded, logged, counted and traced, and the caller has a role or an ID token. There are no streams.
type localConn struct {
	edge  *interceptors
	fleet *service
	stats stats.Handler // nil: calls are not traced
	// admit says whether the caller may call a method.
	admit func(ctx context.Context, method string, req any) error
}

func (s *Server) local(admit func(ctx context.Context, method string, req any) error) *localConn {
	return &localConn{edge: s.workers.edge, fleet: s.service, stats: s.stats, admit: admit}
}

// Viewer calls the FleetService as a caller with the role viewer, who has a name in the log.
func (s *Server) Viewer(name string) grpc.ClientConnInterface {
	viewer := caller{name: name, role: policy.RoleViewer}
	return s.local(func(ctx context.Context, method string, _ any) error {
		*callerOf(ctx) = viewer
		return viewer.mayCall(method)
	})
}

// Workflow calls the FleetService as the workflow run that an ID token was given to. It is good for one call. The token must have come by TLS.
func (s *Server) Workflow(token string) grpc.ClientConnInterface {
	edge := s.workers.edge
	return s.local(func(ctx context.Context, method string, req any) error {
		c, err := edge.workflow(ctx, []string{"Bearer " + token})
		return edge.admitted(ctx, c, err, method, logFields(req))
	})
}

// Invoke makes a call.
func (c *localConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) (err error) {
	ctx, end := traced(ctx, c.stats, method)
	defer func() { end(err) }()
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
		moveInto(reply.(proto.Message), resp.(proto.Message))
		return nil
	}
	return status.Errorf(codes.Unimplemented, "there is no call %s", method)
}

// traced begins what the handler of traces makes of a call, as gRPC does for one that comes by the network.
func traced(ctx context.Context, h stats.Handler, method string) (_ context.Context, end func(error)) {
	if h == nil {
		return ctx, func(error) {}
	}
	began := time.Now()
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method})
	h.HandleRPC(ctx, &stats.Begin{BeginTime: began})
	return ctx, func(err error) { h.HandleRPC(ctx, &stats.End{BeginTime: began, EndTime: time.Now(), Error: err}) }
}

// moveInto gives a caller's message the fields of an answer, without a copy of what is in them: an answer has thousands of events.
func moveInto(reply, resp proto.Message) {
	to := reply.ProtoReflect()
	resp.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
}

// admitted passes a call through what all calls pass.
func (c *localConn) admitted(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return c.edge.handle(ctx, req, info.FullMethod, next, func(ctx context.Context) error { return c.admit(ctx, info.FullMethod, req) })
}

// NewStream is not offered.
func (c *localConn) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "%s is a stream: call it over the network", method)
}

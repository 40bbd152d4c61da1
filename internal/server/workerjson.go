package server

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// WorkerJSON takes the calls of the WorkerService in JSON, from who has a worker token. A call passes what it
// would pass as gRPC, and has the same errors, as statuses of gRPC.
type WorkerJSON struct {
	edge    *interceptors
	workers *workers
}

// The form of answers: the names of the proto, and what is false or 0 is there.
var workerAnswer = protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}

// WorkerCaller is who may call: the worker of some services.
type WorkerCaller struct{ caller caller }

// Caller tells whose token it is.
func (w *WorkerJSON) Caller(token string) (WorkerCaller, error) {
	c, err := w.edge.worker(token)
	return WorkerCaller{c}, err
}

// Call makes a call by its name. The fields, which the path of the call gave,
// are filled in, and so is the service where a token is good for one alone.
func (w *WorkerJSON) Call(ctx context.Context, from WorkerCaller, call string, fields map[string]string, request []byte) ([]byte, error) {
	for _, m := range remudav1.WorkerService_ServiceDesc.Methods {
		if m.MethodName != call {
			continue
		}
		read := func(req any) error { return from.read(req, fields, request) }
		resp, err := m.Handler(w.workers, ctx, read, w.admitted(from.caller))
		if err != nil {
			return nil, err
		}
		return workerAnswer.Marshal(resp.(proto.Message))
	}
	return nil, status.Errorf(codes.Unimplemented, "there is no call %s", call)
}

// admitted passes a call whose caller is known through what all calls pass.
func (w *WorkerJSON) admitted(from caller) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return w.edge.handle(ctx, req, info.FullMethod, next, func(ctx context.Context) error {
			*callerOf(ctx) = from
			return from.mayCall(info.FullMethod)
		})
	}
}

// read makes a request of JSON.
func (c WorkerCaller) read(req any, fields map[string]string, text []byte) error {
	m := req.(proto.Message)
	if err := protojson.Unmarshal(text, m); err != nil {
		return status.Errorf(codes.InvalidArgument, "the body is not JSON of %s: %s", m.ProtoReflect().Descriptor().Name(), reason(err))
	}
	for name, value := range fields {
		if err := fill(m.ProtoReflect(), name, value); err != nil {
			return err
		}
	}
	own := c.caller.services
	switch {
	case textField(m.ProtoReflect(), "service") != "":
		return nil
	case len(own) == 1:
		return fill(m.ProtoReflect(), "service", own[0])
	}
	return badField("service", fmt.Sprintf("the token is that of a worker of %s: name one of them", strings.Join(own, " and ")))
}

// reason is what protojson says is wrong, without the words that it begins with.
func reason(err error) string {
	_, what, found := strings.Cut(strings.ReplaceAll(err.Error(), "\u00a0", " "), ": ")
	if !found {
		return err.Error()
	}
	return what
}

// fill gives a field a value. A body that says something else is refused.
func fill(m protoreflect.Message, name, value string) error {
	if is := textField(m, protoreflect.Name(name)); is != "" && is != value {
		return badField(name, "is not the one of the path")
	}
	m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOfString(value))
	return nil
}

package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"runtime/debug"
	"time"

	"buf.build/go/protovalidate"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/logkey"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// callTimeout bounds a call without a deadline of its caller.
	callTimeout = time.Minute
	// releaseTimeout bounds a Release without a deadline that waits for its hosts, and so for their last job.
	releaseTimeout = 30 * time.Minute
)

// interceptors handle every call before it reaches the service: they log and count
// it, recover panics, admit its caller, validate its message and bound its time.
type interceptors struct {
	log       hclog.Logger
	metrics   Metrics
	validator protovalidate.Validator
	callers   Callers
	// stopping ends the streams of gRPC's own services, which do not know that the server stops.
	stopping context.Context
}

// unary handles a call with one request and one answer.
func (e *interceptors) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return e.handle(ctx, req, info.FullMethod, next, func(ctx context.Context) error { return e.admit(ctx, info.FullMethod, logFields(req)) })
}

// handle is unary with the caller's way to admit the call.
func (e *interceptors) handle(ctx context.Context, req any, method string, next grpc.UnaryHandler, admit func(context.Context) error) (resp any, err error) {
	ctx, began := withCaller(ctx), time.Now()
	defer func() { e.observe(ctx, method, req, time.Since(began), err) }()
	defer e.recovered(method, &err)
	if err := admit(ctx); err != nil {
		return nil, err
	}
	if err := e.validate(req); err != nil {
		return nil, err
	}
	if err := e.checkOwn(ctx, method, req); err != nil {
		return nil, err
	}
	ctx, cancel := withDeadline(ctx, req)
	defer cancel()
	return next(ctx, req)
}

// stream handles a call that streams.
func (e *interceptors) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	ctx, began := withCaller(stream.Context()), time.Now()
	defer func() { e.observe(ctx, info.FullMethod, nil, time.Since(began), err) }()
	defer e.recovered(info.FullMethod, &err)
	if err := e.admit(ctx, info.FullMethod, nil); err != nil {
		return err
	}
	if ours(info.FullMethod) {
		return next(srv, &checkedStream{stream, ctx, e})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stopping, cancel)()
	if err = next(srv, &checkedStream{&endingStream{stream, ctx}, ctx, e}); err != nil && e.stopping.Err() != nil {
		return status.Error(codes.Unavailable, "controld is stopping")
	}
	return err
}

// endingStream is a stream of gRPC's own services. Its messages are waited for until its context ends.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }() // it ends with the stream at the latest
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// checkedStream is a stream whose context has its caller. It validates each message that comes in.
type checkedStream struct {
	grpc.ServerStream
	ctx          context.Context
	interceptors *interceptors
}

func (s *checkedStream) Context() context.Context { return s.ctx }

func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.interceptors.validate(m)
}

// observe logs and counts a call. Requests carry no secrets; of their fields
// only those that name a thing are logged.
func (e *interceptors) observe(ctx context.Context, method string, req any, took time.Duration, err error) {
	code := status.Code(err)
	if e.metrics != nil {
		e.metrics.Requested(method, code.String(), took)
	}
	args := []any{logkey.Method, method, logkey.Code, code.String(), logkey.Took, took.Round(time.Microsecond)}
	if p, ok := peer.FromContext(ctx); ok {
		args = append(args, logkey.Address, p.Addr.String())
	}
	if name := callerOf(ctx).name; name != "" {
		args = append(args, logkey.Caller, name)
	}
	args = append(args, logFields(req)...)
	if err != nil {
		args = append(args, logkey.Error, status.Convert(err).Message())
	}
	if ours(method) {
		e.log.Info("rpc finished", args...)
	} else {
		e.log.Debug("rpc finished", args...)
	}
}

// maxLogField is how many bytes of a field are logged. No valid request has more.
const maxLogField = 200

// loggedFields are the log keys of the fields that name a thing, in the order in which they are logged.
var loggedFields = []struct {
	name protoreflect.Name
	key  string
}{
	{"repository", logkey.Repository}, {"run_id", logkey.Run}, {"request_id", logkey.Request}, {"instance_id", logkey.Instance},
	{"service", logkey.Service}, {"job_id", logkey.Job}, {"worker_id", logkey.Worker},
}

// logFields are the keys and values that say what a request is about.
func logFields(req any) []any {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	var fields []any
	for _, f := range loggedFields {
		if value := textField(m.ProtoReflect(), f.name); value != "" { // it is not validated yet, and may be of any length
			fields = append(fields, f.key, value[:min(len(value), maxLogField)])
		}
	}
	return fields
}

// textField is a field of a message; empty if it is empty or the message has none of that name.
func textField(m protoreflect.Message, name protoreflect.Name) string {
	if f := m.Descriptor().Fields().ByName(name); f != nil && m.Has(f) {
		return m.Get(f).String()
	}
	return ""
}

// recovered turns a panic into an error that gives its caller only an id. The log has
// the panic under that id.
func (e *interceptors) recovered(method string, err *error) {
	if p := recover(); p != nil {
		id := randomID()
		e.log.Error("panic in a call", logkey.Method, method, logkey.ID, id, logkey.Panic, p, logkey.Stack, string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "internal error %s: see controld's log", id)
	}
}

// randomID is 128 random bits in hex.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// withDeadline gives a deadline to a call whose caller set none.
func withDeadline(ctx context.Context, req any) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultTimeout(req))
}

// defaultTimeout is how long a call without a deadline may take.
func defaultTimeout(req any) time.Duration {
	switch r := req.(type) {
	case *remudav1.ProvisionRequest:
		if r.GetTimeout() != nil {
			return r.GetTimeout().AsDuration() + callTimeout
		}
		return fleet.DefaultTimeout + callTimeout
	case *remudav1.ReleaseRequest:
		if r.GetWait() {
			return releaseTimeout
		}
	}
	return callTimeout
}

// validate checks a message by the rules in its proto.
func (e *interceptors) validate(req any) error {
	if m, ok := req.(proto.Message); ok {
		if err := e.validator.Validate(m); err != nil {
			return invalid(err)
		}
	}
	return nil
}

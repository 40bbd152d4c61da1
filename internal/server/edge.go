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

	"github.com/remuda-ci/remuda/internal/fleet"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// callWithin bounds a call whose caller set no deadline.
	callWithin = time.Minute
	// releaseWithin bounds a Release that waits for its hosts, and so for
	// their last job, without a deadline of its caller's.
	releaseWithin = 30 * time.Minute
)

// edge is what every call passes before it reaches the service: it is
// observed, a panic is caught, its caller is admitted, its message is checked,
// its time is bounded.
type edge struct {
	log       hclog.Logger
	metrics   Metrics
	validator protovalidate.Validator
	callers   Callers
}

func (e *edge) observeUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	ctx = withCaller(ctx)
	resp, err := next(ctx, req)
	e.observe(ctx, info.FullMethod, req, time.Since(began), err)
	return resp, err
}

func (e *edge) observeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	began := time.Now()
	ctx := withCaller(stream.Context())
	err := next(srv, &knownStream{ServerStream: stream, ctx: ctx})
	e.observe(ctx, info.FullMethod, nil, time.Since(began), err)
	return err
}

// knownStream is a stream whose context has its caller.
type knownStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *knownStream) Context() context.Context { return s.ctx }

// observe logs and counts a call. Requests carry no secrets; of their fields
// only those that name a thing are logged.
func (e *edge) observe(ctx context.Context, method string, req any, took time.Duration, err error) {
	code := status.Code(err)
	if e.metrics != nil {
		e.metrics.Requested(method, code.String(), took)
	}
	args := []any{"method", method, "code", code.String(), "took", took.Round(time.Microsecond)}
	if p, ok := peer.FromContext(ctx); ok {
		args = append(args, "peer", p.Addr.String(), "caller", callerOf(ctx).name)
	}
	args = append(args, naming(req)...)
	if err != nil {
		args = append(args, "error", status.Convert(err).Message())
	}
	if ours(method) {
		e.log.Info("call", args...)
	} else {
		e.log.Debug("call", args...)
	}
}

// maxNaming is how much is logged of a field that names something. None of a
// valid request is longer.
const maxNaming = 200

// naming picks what a request is about.
func naming(req any) []any {
	var args []any
	add := func(name, value string) {
		if value != "" { // it is not checked yet, and may be of any length
			args = append(args, name, value[:min(len(value), maxNaming)])
		}
	}
	if r, ok := req.(interface{ GetRepository() string }); ok {
		add("repository", r.GetRepository())
	}
	if r, ok := req.(interface{ GetRunId() string }); ok {
		add("run", r.GetRunId())
	}
	if r, ok := req.(interface{ GetRequestId() string }); ok {
		add("request", r.GetRequestId())
	}
	if r, ok := req.(interface{ GetInstanceId() string }); ok {
		add("instance", r.GetInstanceId())
	}
	if r, ok := req.(interface{ GetService() string }); ok {
		add("service", r.GetService())
	}
	if r, ok := req.(interface{ GetJobId() string }); ok {
		add("job", r.GetJobId())
	}
	if r, ok := req.(interface{ GetWorkerId() string }); ok {
		add("worker", r.GetWorkerId())
	}
	return args
}

func (e *edge) recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer e.recovered(info.FullMethod, &err)
	return next(ctx, req)
}

func (e *edge) recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer e.recovered(info.FullMethod, &err)
	return next(srv, stream)
}

// recovered turns a panic into an error that tells its caller nothing but an
// id, under which the log has the rest.
func (e *edge) recovered(method string, err *error) {
	if p := recover(); p != nil {
		id := randomID()
		e.log.Error("panic in a call", "method", method, "id", id, "panic", p, "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "internal error %s: see controld's log", id)
	}
}

// randomID is 128 random bits in hex.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// boundUnary gives a deadline to a call whose caller set none.
func (e *edge) boundUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if _, ok := ctx.Deadline(); ok {
		return next(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, within(req))
	defer cancel()
	return next(ctx, req)
}

func within(req any) time.Duration {
	switch r := req.(type) {
	case *remudav1.ProvisionRequest:
		if r.GetTimeout() != nil {
			return r.GetTimeout().AsDuration() + callWithin
		}
		return fleet.DefaultTimeout + callWithin
	case *remudav1.ReleaseRequest:
		if r.GetWait() {
			return releaseWithin
		}
	}
	return callWithin
}

func (e *edge) validateUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := e.validate(req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (e *edge) validateStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &checkedStream{ServerStream: stream, edge: e})
}

// checkedStream checks each message that comes in.
type checkedStream struct {
	grpc.ServerStream
	edge *edge
}

func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.edge.validate(m)
}

// validate holds a message against the rules in its proto.
func (e *edge) validate(req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	if err := e.validator.Validate(m); err != nil {
		return invalid(err)
	}
	return nil
}

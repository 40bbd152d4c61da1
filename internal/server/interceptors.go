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
}

func (e *interceptors) observeUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	ctx = withCaller(ctx)
	resp, err := next(ctx, req)
	e.observe(ctx, info.FullMethod, req, time.Since(began), err)
	return resp, err
}

func (e *interceptors) observeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
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
func (e *interceptors) observe(ctx context.Context, method string, req any, took time.Duration, err error) {
	code := status.Code(err)
	if e.metrics != nil {
		e.metrics.Requested(method, code.String(), took)
	}
	args := []any{logkey.Method, method, logkey.Code, code.String(), logkey.Took, took.Round(time.Microsecond)}
	if p, ok := peer.FromContext(ctx); ok {
		args = append(args, logkey.Address, p.Addr.String(), logkey.Caller, callerOf(ctx).name)
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

// logFields are the keys and values that say what a request is about.
func logFields(req any) []any {
	var fields []any
	add := func(key, value string) {
		if value != "" { // it is not validated yet, and may be of any length
			fields = append(fields, key, value[:min(len(value), maxLogField)])
		}
	}
	if r, ok := req.(interface{ GetRepository() string }); ok {
		add(logkey.Repository, r.GetRepository())
	}
	if r, ok := req.(interface{ GetRunId() string }); ok {
		add(logkey.Run, r.GetRunId())
	}
	if r, ok := req.(interface{ GetRequestId() string }); ok {
		add(logkey.Request, r.GetRequestId())
	}
	if r, ok := req.(interface{ GetInstanceId() string }); ok {
		add(logkey.Instance, r.GetInstanceId())
	}
	if r, ok := req.(interface{ GetService() string }); ok {
		add(logkey.Service, r.GetService())
	}
	if r, ok := req.(interface{ GetJobId() string }); ok {
		add(logkey.Job, r.GetJobId())
	}
	if r, ok := req.(interface{ GetWorkerId() string }); ok {
		add(logkey.Worker, r.GetWorkerId())
	}
	return fields
}

func (e *interceptors) recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer e.recovered(info.FullMethod, &err)
	return next(ctx, req)
}

func (e *interceptors) recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer e.recovered(info.FullMethod, &err)
	return next(srv, stream)
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

// boundUnary gives a deadline to a call whose caller set none.
func (e *interceptors) boundUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if _, ok := ctx.Deadline(); ok {
		return next(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout(req))
	defer cancel()
	return next(ctx, req)
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

func (e *interceptors) validateUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := e.validate(req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (e *interceptors) validateStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &checkedStream{ServerStream: stream, interceptors: e})
}

// checkedStream checks each message that comes in.
type checkedStream struct {
	grpc.ServerStream
	interceptors *interceptors
}

func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.interceptors.validate(m)
}

// validate checks a message by the rules in its proto.
func (e *interceptors) validate(req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	if err := e.validator.Validate(m); err != nil {
		return invalid(err)
	}
	return nil
}

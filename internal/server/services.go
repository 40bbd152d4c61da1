package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// NudgeService looks at a service now instead of at the next sweep.
func (s *service) NudgeService(ctx context.Context, req *remudav1.NudgeServiceRequest) (*remudav1.NudgeServiceResponse, error) {
	status, err := s.fleet.NudgeService(ctx, req.GetService())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.NudgeServiceResponse{Service: runnerService(status)}, nil
}

// ListServices pages through the services of the configuration, by name.
func (s *service) ListServices(ctx context.Context, req *remudav1.ListServicesRequest) (*remudav1.ListServicesResponse, error) {
	page, err := s.fleet.Services(ctx, lifecycle.PageOf{After: req.GetPageToken(), Limit: int(req.GetPageSize())})
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.ListServicesResponse{NextPageToken: page.Next}
	for _, status := range page.Items {
		resp.Services = append(resp.Services, runnerService(status))
	}
	return resp, nil
}

// runnerService is a service as callers see it: as the configuration has it, and as it was last looked at.
func runnerService(s services.Status) *remudav1.Service {
	one := &remudav1.Service{
		Name: s.Name, Region: s.Region, Cluster: s.Cluster, EcsService: s.ECSService,
		DesiredCount: bounded(s.Seen.Wanted), RunningCount: bounded(s.Seen.Running),
		QueuedCount: known(s.Seen.Queued), BusyCount: known(s.Seen.Busy), IdleChecks: bounded(s.Seen.IdleChecks),
		CheckTime: timestampOrNil(s.Seen.CheckedAt), Reason: s.Seen.Reason, ReasonCode: string(s.Seen.ReasonCode),
		MoreQueued: s.Seen.More,
	}
	if s.Workers == nil {
		return one
	}
	one.MoreWorkers = s.Workers.More
	for _, v := range s.Workers.Versions {
		one.Workers = append(one.Workers, &remudav1.WorkerVersion{Version: v.Version, OnlineCount: bounded(v.Online), OfflineCount: bounded(v.Offline)})
	}
	return one
}

// known is a count, or 0 where the reason says that it is not known.
func known(n *int) int32 {
	if n == nil {
		return 0
	}
	return bounded(*n)
}

// bounded is a count as the contract has it. A table may have more rows.
func bounded(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// workers is the WorkerService.
type workers struct {
	remudav1.UnimplementedWorkerServiceServer
	fleet *fleet.Fleet
	// errors maps those of the use-cases.
	errors func(context.Context, error) error
}

// SubmitJob puts a job into the queue of a service. One without an id gets one.
func (s *workers) SubmitJob(ctx context.Context, req *remudav1.SubmitJobRequest) (*remudav1.SubmitJobResponse, error) {
	if req.GetJobId() == "" {
		req.JobId = randomID()
	}
	j, err := s.fleet.SubmitWork(ctx, req.GetService(), req.GetJobId(), req.GetPayload(), time.Now())
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	return &remudav1.SubmitJobResponse{Job: s.job(j)}, nil
}

// Heartbeat tells that a worker is there.
func (s *workers) Heartbeat(ctx context.Context, req *remudav1.HeartbeatRequest) (*remudav1.HeartbeatResponse, error) {
	now := time.Now()
	w, err := s.fleet.HearWorker(ctx, req.GetService(), req.GetWorkerId(), req.GetVersion(), now)
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	return &remudav1.HeartbeatResponse{Worker: worker(w, now)}, nil
}

// ClaimJob gives a worker a job.
func (s *workers) ClaimJob(ctx context.Context, req *remudav1.ClaimJobRequest) (*remudav1.ClaimJobResponse, error) {
	j, found, err := s.fleet.ClaimWork(ctx, req.GetService(), req.GetWorkerId(), req.GetVersion(), time.Now())
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	resp := &remudav1.ClaimJobResponse{}
	if found {
		resp.Job = s.job(j)
	}
	return resp, nil
}

// AppendJobLog adds to a job's log.
func (s *workers) AppendJobLog(ctx context.Context, req *remudav1.AppendJobLogRequest) (*remudav1.AppendJobLogResponse, error) {
	j, err := s.fleet.AppendWorkLog(ctx, req.GetService(), req.GetJobId(), turn(req), req.GetOffset(), req.GetLines(), time.Now())
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	return &remudav1.AppendJobLogResponse{LogBytes: j.LogBytes}, nil
}

// FinishJob ends a job.
func (s *workers) FinishJob(ctx context.Context, req *remudav1.FinishJobRequest) (*remudav1.FinishJobResponse, error) {
	j, err := s.fleet.FinishWork(ctx, req.GetService(), req.GetJobId(), turn(req), req.GetSucceeded(), req.GetReason(), time.Now())
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	return &remudav1.FinishJobResponse{Job: s.job(j)}, nil
}

// GetJob reads one job.
func (s *workers) GetJob(ctx context.Context, req *remudav1.GetJobRequest) (*remudav1.GetJobResponse, error) {
	j, err := s.fleet.Work(ctx, req.GetService(), req.GetJobId())
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	return &remudav1.GetJobResponse{Job: s.job(j)}, nil
}

// ListJobs pages through the jobs of a service. They may be large, and go without payloads and logs.
func (s *workers) ListJobs(ctx context.Context, req *remudav1.ListJobsRequest) (*remudav1.ListJobsResponse, error) {
	var states []model.JobState
	for _, state := range model.JobStates {
		if slices.Contains(req.GetStates(), workState(state)) {
			states = append(states, state)
		}
	}
	of := lifecycle.PageOf{After: req.GetPageToken(), Limit: int(req.GetPageSize())}
	page, err := s.fleet.ListWork(ctx, req.GetService(), states, of)
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	resp := &remudav1.ListJobsResponse{NextPageToken: page.Next}
	for _, j := range page.Items {
		j.Payload, j.LogTail = nil, ""
		resp.Jobs = append(resp.Jobs, s.job(j))
	}
	return resp, nil
}

// ListWorkers pages through the workers of a service.
func (s *workers) ListWorkers(ctx context.Context, req *remudav1.ListWorkersRequest) (*remudav1.ListWorkersResponse, error) {
	of := lifecycle.PageOf{After: req.GetPageToken(), Limit: int(req.GetPageSize())}
	page, err := s.fleet.Workers(ctx, req.GetService(), of)
	if err != nil {
		return nil, s.errors(ctx, err)
	}
	resp, now := &remudav1.ListWorkersResponse{NextPageToken: page.Next}, time.Now()
	for _, w := range page.Items {
		resp.Workers = append(resp.Workers, worker(w, now))
	}
	return resp, nil
}

// turn is the worker and the attempt that a call is about.
func turn(req interface {
	GetWorkerId() string
	GetAttempt() int32
}) model.JobAttempt {
	return model.JobAttempt{WorkerID: req.GetWorkerId(), Number: int(req.GetAttempt())}
}

// job is a job as callers see it.
func (s *workers) job(j model.Job) *remudav1.WorkerJob {
	return &remudav1.WorkerJob{
		JobId: j.ID, Service: j.Service, State: workState(j.State), Payload: j.Payload, WorkerId: j.WorkerID, Attempt: int32(j.Attempt),
		CreateTime: timestampOrNil(j.CreatedAt), StartTime: timestampOrNil(j.StartedAt), ActivityTime: timestampOrNil(j.ActivityAt), EndTime: timestampOrNil(j.EndedAt),
		Reason: j.Reason, LogTail: j.LogTail, LogBytes: j.LogBytes, Awaited: s.fleet.WorkAwaited(j),
	}
}

func worker(w model.Worker, now time.Time) *remudav1.Worker {
	return &remudav1.Worker{
		WorkerId: w.ID, Service: w.Service, Version: w.WorkerVersion, Online: w.Online(now), HeartbeatTime: timestampOrNil(w.HeartbeatAt), JobId: w.JobID,
	}
}

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

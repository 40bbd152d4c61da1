package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// GetInstance reads one host.
func (s *service) GetInstance(ctx context.Context, req *remudav1.GetInstanceRequest) (*remudav1.GetInstanceResponse, error) {
	r, report, err := s.fleet.Instance(ctx, req.GetInstanceId(), s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	i := s.instance(r, report)
	if err := s.addJobs(ctx, []lifecycle.Record{r}, []*remudav1.Instance{i}); err != nil {
		return nil, err
	}
	return &remudav1.GetInstanceResponse{Instance: i}, nil
}

// ListInstances pages through the hosts.
func (s *service) ListInstances(ctx context.Context, req *remudav1.ListInstancesRequest) (*remudav1.ListInstancesResponse, error) {
	filter := lifecycle.Filter{RunID: req.GetRunId(), ResourceClass: req.GetResourceClass(), Pool: req.GetPool(), Repository: req.GetRepository(), Retiring: req.GetRetiring()}
	if req.GetHeld() {
		filter.HeldAt = s.now()
	}
	if len(req.GetStates()) == 0 {
		filter.States = lifecycle.LiveStates
	}
	for _, s := range req.GetStates() {
		filter.States = append(filter.States, wordOf(s, lifecycle.States, state))
	}
	of := lifecycle.PageOf{After: req.GetPageToken(), Limit: int(req.GetPageSize())}
	page, reports, err := s.fleet.List(ctx, filter, of, s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	list := s.instances(page.Items, reports)
	if err := s.addJobs(ctx, page.Items, list); err != nil {
		return nil, err
	}
	return &remudav1.ListInstancesResponse{Instances: list, NextPageToken: page.Next}, nil
}

// addJobs adds the jobs that hosts run. list has an instance for each record, in the same order.
func (s *service) addJobs(ctx context.Context, records []lifecycle.Record, list []*remudav1.Instance) error {
	jobs, err := s.fleet.JobsOn(ctx, records, s.now())
	if err != nil {
		return s.toStatus(ctx, err)
	}
	for i, r := range records {
		if j, ok := jobs[r.HostKey]; ok {
			list[i].Job = workflowJob(j)
		}
	}
	return nil
}

// TerminateInstance ends a host by order.
func (s *service) TerminateInstance(ctx context.Context, req *remudav1.TerminateInstanceRequest) (*remudav1.TerminateInstanceResponse, error) {
	r, err := s.fleet.Terminate(ctx, req.GetInstanceId(), req.GetReason(), s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.TerminateInstanceResponse{Instance: s.instance(r, nil)}, nil
}

// HoldInstance keeps a host for an operator.
func (s *service) HoldInstance(ctx context.Context, req *remudav1.HoldInstanceRequest) (*remudav1.HoldInstanceResponse, error) {
	if _, err := s.fleet.Hold(ctx, req.GetInstanceId(), req.GetDuration().AsDuration(), req.GetReason(), s.now()); err != nil {
		return nil, s.toStatus(ctx, err)
	}
	r, report, err := s.fleet.Instance(ctx, req.GetInstanceId(), s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.HoldInstanceResponse{Instance: s.instance(r, report)}, nil
}

// Drain has hosts leave once they have no run.
func (s *service) Drain(ctx context.Context, req *remudav1.DrainRequest) (*remudav1.DrainResponse, error) {
	of := fleet.DrainTarget{InstanceID: req.GetInstanceId(), Pool: req.GetPool()}
	n, err := s.fleet.Drain(ctx, of, req.GetReason(), callerOf(ctx).name, s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.DrainResponse{DrainedCount: int32(n.Now), RetiringCount: int32(n.Before)}, nil
}

// DropCache has the hosts of a pool delete a cache.
func (s *service) DropCache(ctx context.Context, req *remudav1.DropCacheRequest) (*remudav1.DropCacheResponse, error) {
	t := fleet.DropTarget{Pool: req.GetPool(), Of: req.GetRepository(), Name: req.GetName()}
	n, err := s.fleet.DropCache(ctx, t, req.GetReason(), callerOf(ctx).name, s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.DropCacheResponse{HostCount: int32(n.Marked), LeavingCount: int32(n.Leaving)}, nil
}

// ExplainRun says why a run has, or has not yet, what it asked for, or why a host is as it is.
func (s *service) ExplainRun(ctx context.Context, req *remudav1.ExplainRunRequest) (*remudav1.ExplainRunResponse, error) {
	e, err := s.explanation(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &remudav1.ExplainRunResponse{Sentences: e.Sentences}
	for _, one := range e.Events {
		resp.Events = append(resp.Events, event(one))
	}
	if !req.GetStatements() {
		return resp, nil
	}
	stated, err := s.fleet.Statements(ctx, e, runOfCaller(ctx), s.now())
	for _, one := range stated {
		resp.Statements = append(resp.Statements, resetStatement(one))
	}
	return resp, s.toStatus(ctx, err)
}

// runOfCaller is the run of a workflow that calls; zero for any other caller.
func runOfCaller(ctx context.Context) fleet.OfRun {
	t := callerOf(ctx).token
	if t == nil {
		return fleet.OfRun{}
	}
	return fleet.OfRun{Repository: t.Origin.Repository, RunID: t.Origin.RunID}
}

// explanation explains the run, the job or the host of the request. A workflow sees only jobs of its own run and
// hosts that serve it, and only what they did in it.
func (s *service) explanation(ctx context.Context, req *remudav1.ExplainRunRequest) (fleet.Explanation, error) {
	var e fleet.Explanation
	var err error
	var field, subject, verb string
	own, t := runOfCaller(ctx), callerOf(ctx).token
	switch id, job, now := req.GetInstanceId(), req.GetJobId(), s.now(); {
	case id != "":
		field, subject, verb = "instance_id", id, "does not serve"
		e, err = s.fleet.ExplainHost(ctx, id, own, now)
	case job != 0:
		field, subject, verb = "job_id", fmt.Sprint("job ", job), "is not of"
		named := fleet.OfRun{Repository: req.GetRepository(), RunID: req.GetRunId()}
		e, err = s.fleet.ExplainJob(ctx, job, own, named, now)
	default:
		e, err = s.fleet.Explain(ctx, req.GetRepository(), req.GetRunId(), now)
		return e, s.toStatus(ctx, err)
	}
	if t != nil && errors.Is(err, lifecycle.ErrNotFound) {
		// The same answer for every other host and job, so that a workflow learns of none.
		err = violation(codes.PermissionDenied, field, fmt.Sprintf("%s %s run %s of %s, which is the ID token's", subject, verb, own.RunID, own.Repository))
		audit(ctx, s.log, remudav1.FleetService_ExplainRun_FullMethodName, logFields(req), err, "")
		return e, err
	}
	return e, s.toStatus(ctx, err)
}

// HoldFleet keeps every host from being ended, or takes that back.
func (s *service) HoldFleet(ctx context.Context, req *remudav1.HoldFleetRequest) (*remudav1.HoldFleetResponse, error) {
	now := s.now()
	hold, stored, err := s.fleet.HoldFleet(ctx, req.GetDuration().AsDuration(), req.GetReason(), callerOf(ctx).name, now)
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.HoldFleetResponse{Unstored: !stored}
	if hold.InForce(now) {
		resp.UntilTime = timestamppb.New(hold.Until)
	}
	return resp, nil
}

// watchEvery is how often a watcher reads what is new: one query each.
const watchEvery = 500 * time.Millisecond

// maxWatchers bounds the streams of one controld, and so what they read: 200 queries a second at the most.
const maxWatchers = 100

// WatchFleet streams what happens from now on, of one run or of all.
func (s *service) WatchFleet(req *remudav1.WatchFleetRequest, stream grpc.ServerStreamingServer[remudav1.WatchFleetResponse]) error {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d callers watch already; end one of them, or ask another controld", maxWatchers)
	}
	ctx, cancel := whileCertified(stream.Context())
	defer cancel()
	page, err := s.fleet.LastEvent(ctx)
	if err != nil {
		return s.toStatus(ctx, err)
	}
	// The header tells the caller that the watch has begun.
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		got, err := s.fleet.Events(ctx, page)
		switch {
		case ctx.Err() != nil:
			return watchOver(ctx)
		case err != nil:
			return s.toStatus(ctx, err)
		}
		page.After = got.Next
		if err := s.send(stream, req.GetRunId(), got.Items); err != nil {
			return err
		}
		if len(got.Items) == page.Size() {
			continue // there is more
		}
		select {
		case <-ctx.Done():
			return watchOver(ctx)
		case <-s.stopping.Done():
			return status.Error(codes.Unavailable, "controld is stopping; watch again")
		case <-tick.C:
		}
	}
}

// watchOver is the answer to a watch whose context is over.
func watchOver(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause
	}
	return status.FromContextError(ctx.Err()).Err()
}

func (s *service) send(stream grpc.ServerStreamingServer[remudav1.WatchFleetResponse], runID string, events []lifecycle.Event) error {
	for _, e := range events {
		if runID != "" && e.RunID != runID {
			continue
		}
		if err := stream.Send(&remudav1.WatchFleetResponse{Event: event(e)}); err != nil {
			return err
		}
	}
	return nil
}

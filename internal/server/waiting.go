package server

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// defaultWaits is how many rows there are if the caller says nothing.
const defaultWaits = 100

// ListWaiting lists the requests and the jobs of job pools that wait for hosts.
func (s *service) ListWaiting(ctx context.Context, req *remudav1.ListWaitingRequest) (*remudav1.ListWaitingResponse, error) {
	if _, known := s.fleet.Pools()[req.GetPool()]; req.GetPool() != "" && !known {
		return nil, s.toStatus(ctx, lifecycle.NotFound("there is no pool %q", req.GetPool()))
	}
	all, more, err := s.fleet.Waiting(ctx, req.GetPool(), cmp.Or(int(req.GetRowLimit()), defaultWaits), s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.ListWaitingResponse{More: more}
	for _, w := range all {
		resp.Waits = append(resp.Waits, &remudav1.Wait{
			Pool: w.Pool, Repository: w.Repository, RunId: w.RunID, RequestId: w.RequestID, JobId: w.Job.ID, JobName: line.First(w.Job.Name),
			BeginTime: timestamppb.New(w.Since), MissingCount: bounded(w.Missing), Line: w.Line,
			ReasonCode: string(w.Code), Reason: w.Text, Next: w.Next, ReasonTime: timestampOrNil(w.Answer.Since),
		})
	}
	return resp, nil
}

// defaultEvents and defaultSince are how many events there are, and how far back, if the caller says nothing.
const (
	defaultEvents = 1000
	defaultSince  = time.Hour
)

// ListEvents lists what happened in the last hours.
func (s *service) ListEvents(ctx context.Context, req *remudav1.ListEventsRequest) (*remudav1.ListEventsResponse, error) {
	since := s.now().Add(-defaultSince)
	if req.GetSince() != nil {
		since = s.now().Add(-req.GetSince().AsDuration())
	}
	var until time.Time
	if req.GetUntilTime() != nil {
		until = req.GetUntilTime().AsTime()
	}
	h, err := s.fleet.History(ctx, req.GetInstanceId(), since, until, cmp.Or(int(req.GetRowLimit()), defaultEvents))
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	from := since
	if h.From.After(since) {
		from = h.From
	}
	resp := &remudav1.ListEventsResponse{FromTime: timestamppb.New(from)}
	for _, e := range h.Events {
		resp.Events = append(resp.Events, event(e))
	}
	return resp, nil
}

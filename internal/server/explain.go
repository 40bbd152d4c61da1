package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

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
	return resp, nil
}

// explanation explains the run or the host of the request. A workflow sees only hosts
// that serve its own run, and only what they did in it.
func (s *service) explanation(ctx context.Context, req *remudav1.ExplainRunRequest) (fleet.Explanation, error) {
	id, now := req.GetInstanceId(), time.Now()
	if id == "" {
		e, err := s.fleet.Explain(ctx, req.GetRepository(), req.GetRunId(), now)
		return e, s.toStatus(ctx, err)
	}
	var own fleet.OfRun
	t := callerOf(ctx).token
	if t != nil {
		own = fleet.OfRun{Repository: t.Origin.Repository, RunID: t.Origin.RunID}
	}
	e, err := s.fleet.ExplainHost(ctx, id, own, now)
	if t != nil && errors.Is(err, lifecycle.ErrNotFound) {
		// The same answer for every other host, so that a workflow learns of none.
		err = violation(codes.PermissionDenied, "instance_id", fmt.Sprintf("%s does not serve run %s of %s, which is the ID token's", id, own.RunID, own.Repository))
		audit(ctx, s.log, remudav1.FleetService_ExplainRun_FullMethodName, []any{logkey.Instance, id}, err, "")
		return e, err
	}
	return e, s.toStatus(ctx, err)
}

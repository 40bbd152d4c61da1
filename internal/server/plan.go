package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// defaultDecisions is how many decisions there are if the caller says nothing.
	defaultDecisions = 1000
	// planAhead is how far ahead a plan may be: the schedules of a week have all their times in it.
	planAhead = 7 * 24 * time.Hour
	// planBehind is how far the clock of a caller that asks for now may be behind.
	planBehind = time.Minute
)

// PlanScaleDown says what a scale-down would do, the next one or one at a later time.
func (s *service) PlanScaleDown(ctx context.Context, req *remudav1.PlanScaleDownRequest) (*remudav1.PlanScaleDownResponse, error) {
	var at time.Time
	now := s.now()
	if req.GetDecideTime() != nil {
		at = req.GetDecideTime().AsTime()
	}
	switch {
	case at.IsZero():
	case at.Before(now.Add(-planBehind)):
		return nil, badField("decide_time", fmt.Sprintf("%s is over; it is %s", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	case at.After(now.Add(planAhead)):
		return nil, badField("decide_time", fmt.Sprintf("%s is more than 7 days ahead", at.Format(time.RFC3339)))
	}
	plan, err := s.fleet.ScaleDownPlan(ctx, at, now)
	switch {
	case errors.Is(err, fleet.ErrNoScaleDown):
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	case err != nil:
		return nil, s.toStatus(ctx, err)
	}
	shown := plan.Decisions[:min(cmp.Or(int(req.GetRowLimit()), defaultDecisions), len(plan.Decisions))]
	resp := &remudav1.PlanScaleDownResponse{
		DecideTime: timestamppb.New(plan.At), ReadTime: timestamppb.New(plan.ReadAt), MoreDecisions: bounded(len(plan.Decisions) - len(shown)), KeptIdleCount: bounded(plan.Kept),
	}
	for _, d := range shown {
		resp.Decisions = append(resp.Decisions, decision(d))
	}
	for _, pool := range slices.Sorted(maps.Keys(s.fleet.Pools())) {
		resp.Pools = append(resp.Pools, &remudav1.PoolPlan{Pool: pool, WantedFreshCount: bounded(s.fleet.WarmWanted(pool, plan.At))})
	}
	return resp, nil
}

package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// HoldFleet keeps every host from being ended, or takes that back.
func (s *service) HoldFleet(ctx context.Context, req *remudav1.HoldFleetRequest) (*remudav1.HoldFleetResponse, error) {
	now := time.Now()
	hold, err := s.fleet.HoldFleet(ctx, req.GetDuration().AsDuration(), req.GetReason(), callerOf(ctx).name, now)
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.HoldFleetResponse{}
	if hold.InForce(now) {
		resp.UntilTime = timestamppb.New(hold.Until)
	}
	return resp, nil
}

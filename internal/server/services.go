package server

import (
	"context"
	"math"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
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

package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// GetInstance reads one host.
func (s *service) GetInstance(ctx context.Context, req *remudav1.GetInstanceRequest) (*remudav1.GetInstanceResponse, error) {
	r, report, err := s.fleet.Instance(ctx, req.GetInstanceId(), time.Now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.GetInstanceResponse{Instance: s.instance(r, report)}, nil
}

// ListInstances pages through the hosts.
func (s *service) ListInstances(ctx context.Context, req *remudav1.ListInstancesRequest) (*remudav1.ListInstancesResponse, error) {
	filter := lifecycle.Filter{RunID: req.GetRunId(), ResourceClass: req.GetResourceClass()}
	for _, s := range req.GetStates() {
		filter.States = append(filter.States, wordOf(s, lifecycle.States, state))
	}
	of := lifecycle.PageOf{After: req.GetPageToken(), Limit: int(req.GetPageSize())}
	page, reports, err := s.fleet.List(ctx, filter, of, time.Now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.ListInstancesResponse{Instances: s.instances(page.Items, reports), NextPageToken: page.Next}, nil
}

// TerminateInstance ends a host by order.
func (s *service) TerminateInstance(ctx context.Context, req *remudav1.TerminateInstanceRequest) (*remudav1.TerminateInstanceResponse, error) {
	r, err := s.fleet.Terminate(ctx, req.GetInstanceId(), req.GetReason(), time.Now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.TerminateInstanceResponse{Instance: s.instance(r, nil)}, nil
}

// HoldInstance keeps a host for an operator.
func (s *service) HoldInstance(ctx context.Context, req *remudav1.HoldInstanceRequest) (*remudav1.HoldInstanceResponse, error) {
	if _, err := s.fleet.Hold(ctx, req.GetInstanceId(), req.GetDuration().AsDuration(), req.GetReason(), time.Now()); err != nil {
		return nil, s.toStatus(ctx, err)
	}
	r, report, err := s.fleet.Instance(ctx, req.GetInstanceId(), time.Now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.HoldInstanceResponse{Instance: s.instance(r, report)}, nil
}

// ListPools pages through the configured pools, by name, with their hosts by
// state. It is for people: it goes through every host.
func (s *service) ListPools(ctx context.Context, req *remudav1.ListPoolsRequest) (*remudav1.ListPoolsResponse, error) {
	pools, now := s.fleet.Pools(), time.Now()
	names := slices.Sorted(maps.Keys(pools))
	if after := req.GetPageToken(); after != "" {
		i, found := slices.BinarySearch(names, after)
		if !found {
			return nil, badField("page_token", lifecycle.ErrPageToken.Error())
		}
		names = names[i+1:]
	}
	resp := &remudav1.ListPoolsResponse{}
	if size := (lifecycle.PageOf{Limit: int(req.GetPageSize())}).Size(); len(names) > size {
		names = names[:size]
		resp.NextPageToken = names[size-1]
	}
	counts, err := s.fleet.Count(ctx, now)
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	for _, name := range names {
		p := pools[name]
		pool := &remudav1.Pool{
			Name: name, ResourceClasses: p.ResourceClasses, AllowedInstanceTypes: p.InstanceTypes,
			Reuse: reuse(p.Policy.Reuse), Privileged: p.Privileged, MaxRuntime: durationpb.New(p.Policy.MaxRuntime),
		}
		for _, u := range p.UsageClasses {
			pool.UsageClasses = append(pool.UsageClasses, usageClass(u))
		}
		for _, s := range lifecycle.States {
			if n := counts[name].States[s]; n > 0 {
				pool.Counts = append(pool.Counts, &remudav1.StateCount{State: state(s), Count: int32(n)})
			}
		}
		pool.PooledCount, pool.FreshCount = int32(counts[name].Pooled), int32(counts[name].Fresh)
		pool.Maximum, pool.WantedFreshCount = int32(p.Maximum), int32(s.fleet.WarmWanted(name, now))
		resp.Pools = append(resp.Pools, pool)
	}
	return resp, nil
}

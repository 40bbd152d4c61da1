package server

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// PausePool has a pool give out no host and launch none.
func (s *service) PausePool(ctx context.Context, req *remudav1.PausePoolRequest) (*remudav1.PausePoolResponse, error) {
	p, err := s.fleet.SetPause(ctx, req.GetPool(), true, req.GetReason(), callerOf(ctx).name, s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.PausePoolResponse{Pause: pauseMessage(p)}, nil
}

// ResumePool takes the pause of a pool away.
func (s *service) ResumePool(ctx context.Context, req *remudav1.ResumePoolRequest) (*remudav1.ResumePoolResponse, error) {
	if _, err := s.fleet.SetPause(ctx, req.GetPool(), false, req.GetReason(), callerOf(ctx).name, s.now()); err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.ResumePoolResponse{}, nil
}

// pauseMessage is nil for a pool that is not paused.
func pauseMessage(p pause.Pause) *remudav1.Pause {
	if !p.On() {
		return nil
	}
	return &remudav1.Pause{BeginTime: timestamppb.New(p.Since), Operator: p.By, Reason: p.Reason}
}

// ListPools pages through the configured pools, and those that the configuration has no longer but that have hosts, by name, with their
// hosts by state. It is for people: it goes through every host.
func (s *service) ListPools(ctx context.Context, req *remudav1.ListPoolsRequest) (*remudav1.ListPoolsResponse, error) {
	pools, now := s.fleet.Pools(), s.now()
	counts, err := s.fleet.Count(ctx, now)
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	names := slices.Collect(maps.Keys(pools))
	for name := range counts {
		if _, configured := pools[name]; !configured {
			names = append(names, name)
		}
	}
	slices.Sort(names)
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
	for _, name := range names {
		if _, configured := pools[name]; !configured {
			resp.Pools = append(resp.Pools, removedPool(name, counts[name]))
			continue
		}
		pause, err := s.fleet.PauseOf(ctx, name, now)
		if err != nil {
			return nil, s.toStatus(ctx, err)
		}
		pool := poolMessage(name, pools[name], counts[name])
		pool.WantedFreshCount, pool.Pause = int32(s.fleet.WarmWanted(name, now)), pauseMessage(pause)
		pool.WantedFreshStoppedCount = int32(s.fleet.StoppedWanted(name, now))
		resp.Pools = append(resp.Pools, pool)
	}
	return resp, nil
}

// poolMessage is the message of a pool and of how many hosts it has.
func poolMessage(name string, p fleet.Pool, count fleet.Counts) *remudav1.Pool {
	pool := &remudav1.Pool{
		Name: name, ResourceClasses: p.ResourceClasses, AllowedInstanceTypes: p.InstanceTypes,
		Reuse: reuse(p.Policy.Reuse), Privileged: p.Privileged, MaxRuntime: durationpb.New(p.Policy.MaxRuntime),
	}
	for _, u := range p.UsageClasses {
		pool.UsageClasses = append(pool.UsageClasses, usageClass(u))
	}
	addCounts(pool, count)
	if p.Maximum != nil {
		pool.Maximum, pool.HasMaximum = int32(*p.Maximum), true
	}
	return pool
}

// removedPool is the message of a pool that the configuration has no longer.
func removedPool(name string, count fleet.Counts) *remudav1.Pool {
	pool := &remudav1.Pool{Name: name, Removed: true}
	addCounts(pool, count)
	return pool
}

func addCounts(pool *remudav1.Pool, count fleet.Counts) {
	for _, s := range lifecycle.States {
		if n := count.States[s]; n > 0 {
			pool.Counts = append(pool.Counts, &remudav1.StateCount{State: state(s), Count: int32(n)})
		}
	}
	pool.PooledCount, pool.FreshCount, pool.HotCount = int32(count.Pooled), int32(count.Fresh), int32(count.Hot)
	pool.StoppedCount, pool.FreshStoppedCount = int32(count.Stopped), int32(count.FreshStopped)
}

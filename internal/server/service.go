package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// service is the FleetService.
type service struct {
	remudav1.UnimplementedFleetServiceServer
	fleet    *fleet.Fleet
	log      hclog.Logger
	callers  Callers
	patience time.Duration
	now      func() time.Time
	// What GetStatus says of this process; see Options.
	replica     string
	replicas    func(context.Context) ([]replicas.Replica, error)
	credentials func() []Credential
	// watchers holds a token for each WatchFleet under way.
	watchers  chan struct{}
	followers *followers
	// stopping ends the streams, handOver the calls that wait for hosts.
	stopping, handOver context.Context
}

// Provision gets a run its hosts. A request without an id gets one, which the log and the errors tell as well
// as the answer: who sends it with the request again resumes it.
func (s *service) Provision(ctx context.Context, req *remudav1.ProvisionRequest) (*remudav1.ProvisionResponse, error) {
	if req.GetRequestId() == "" {
		req.RequestId = randomID()
	}
	d, err := s.authorize(ctx, demand(req))
	if err != nil {
		return nil, err
	}
	resp, err := s.provision(ctx, d)
	if err != nil {
		return nil, withDetails(s.toStatus(ctx, err), &errdetails.RequestInfo{RequestId: req.GetRequestId()})
	}
	return resp, nil
}

func (s *service) provision(ctx context.Context, d fleet.Demand) (*remudav1.ProvisionResponse, error) {
	p, err := s.fleet.NewProvision(d)
	if err != nil {
		return nil, err
	}
	if err := s.drive(ctx, p, untilDeadline); err != nil {
		return nil, err
	}
	records := p.Instances()
	reports, err := s.fleet.ReportsOf(ctx, records, p.Heard(), s.now())
	if err != nil {
		return nil, err
	}
	resp := &remudav1.ProvisionResponse{Instances: s.instances(records, reports), RequestId: d.RequestID}
	for _, t := range p.Request().Taken {
		if t.Reused {
			resp.ReusedCount++
		} else {
			resp.CreatedCount++
		}
	}
	return resp, nil
}

// demand is the use-case's form of a request. Absent fields stay zero: the fleet knows the defaults.
func demand(req *remudav1.ProvisionRequest) fleet.Demand {
	return fleet.Demand{
		Repository: req.GetRepository(), RunID: req.GetRunId(), RequestID: req.GetRequestId(), DefaultRuntime: req.GetMaxRuntime() == nil,
		Spec: lifecycle.Spec{
			RunAttempt: int(req.GetRunAttempt()), Count: int(req.GetInstanceCount()), MinimumCount: int(req.GetMinimumCount()),
			Pool: req.GetPool(), ResourceClass: req.GetResourceClass(), UsageClass: wordOf(req.GetUsageClass(), lifecycle.UsageClasses, usageClass),
			InstanceTypes: req.GetAllowedInstanceTypes(), MaxRuntime: req.GetMaxRuntime().AsDuration(),
			Timeout: req.GetTimeout().AsDuration(), Labels: req.GetLabels(), AllowOnDemand: req.GetAllowOnDemandFallback(),
			ReplaceInterrupted: req.GetReplaceInterrupted(),
		},
	}
}

// Release gives a run's hosts back.
func (s *service) Release(ctx context.Context, req *remudav1.ReleaseRequest) (*remudav1.ReleaseResponse, error) {
	r := s.fleet.NewRelease(req.GetRepository(), req.GetRunId(), int(req.GetRunAttempt()), req.GetWait())
	if err := s.drive(ctx, r, untilDeadline); err != nil {
		return nil, s.toStatus(ctx, err)
	}
	// What follows the release changes it, so the answer is made first.
	defer func() {
		if len(r.Instances()) > 0 && (!req.GetWait() || slices.ContainsFunc(r.Instances(), lifecycle.Record.Warming)) {
			s.followers.follow(r, req.GetRunId())
		}
	}()
	reports, err := s.fleet.ReportsOf(ctx, r.Instances(), r.Heard(), s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	return &remudav1.ReleaseResponse{
		Instances: s.instances(r.Instances(), reports), PooledCount: int32(r.Pooled()), FailedCount: int32(r.Failed()),
	}, nil
}

// Refresh looks at everything once.
func (s *service) Refresh(ctx context.Context, req *remudav1.RefreshRequest) (*remudav1.RefreshResponse, error) {
	r := s.fleet.NewRefresh(req.GetDryRun())
	if err := s.drive(ctx, r, s.patience); err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.RefreshResponse{}
	for _, d := range r.Decisions() {
		resp.Decisions = append(resp.Decisions, decision(d))
	}
	for _, resource := range r.Resources() {
		resp.Resources = append(resp.Resources, &remudav1.Resource{
			Kind: resource.Kind, Name: resource.Name, Change: resourceChange(resource.Change), Detail: resource.Detail,
		})
	}
	return resp, nil
}

func decision(d fleet.Decided) *remudav1.Decision {
	return &remudav1.Decision{InstanceId: d.InstanceID, Action: action(d.Action), Reason: d.Reason, ReasonCode: string(d.Code), Sweep: d.Sweep}
}

// untilDeadline is the patience of a call that its own deadline ends sooner.
const untilDeadline = 24 * time.Hour

// errStopping is the answer to calls that wait for hosts when controld stops.
var errStopping = &lifecycle.UnavailableError{
	What: "controld is stopping", RetryAfter: time.Second, Err: errors.New("what was asked for goes on; send the same request again"),
}

// operation is what a call drives.
type operation interface {
	fleet.Op
	// Begun reports whether it has done something, rather than only read.
	Begun() bool
}

// drive steps an operation until it is done, fails, its caller leaves or controld stops. While a dependency
// is away, a call that has done nothing yet soon says so, since its caller can try elsewhere; one that has
// begun goes on for as long as patience, since its work would go on without it.
func (s *service) drive(ctx context.Context, op operation, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.handOver, func() { cancel(errStopping) })()
	err := s.fleet.Drive(ctx, op, s.patience)
	if op.Begun() && patience > s.patience && ctx.Err() == nil && errors.Is(err, lifecycle.ErrUnavailable) {
		err = s.fleet.Drive(ctx, op, patience)
	}
	return err
}

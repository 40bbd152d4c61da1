package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// checkOwn refuses a workflow's request about another run, and a worker's about another service.
func (e *interceptors) checkOwn(ctx context.Context, method string, req any) (err error) {
	switch c := callerOf(ctx); {
	case c.token != nil && ours(method):
		err = ownRun(c.token, req)
	case c.services != nil:
		err = ownService(c.services, req)
	}
	if err != nil {
		audit(ctx, e.log, method, logFields(req), err, "")
	}
	return err
}

// ownRun refuses a request that is about another run than the token's, and fills in the attempt.
func ownRun(t *Token, req any) error {
	if r, ok := req.(*remudav1.ExplainRunRequest); ok && r.GetRepository() == "" && r.GetRunId() == "" {
		return nil // the record of the host or the job names its run: see explanation
	}
	r, ok := req.(interface {
		GetRepository() string
		GetRunId() string
	})
	switch {
	case !ok:
		return status.Error(codes.PermissionDenied, "the request is about no run, and a workflow may call for its own only")
	case r.GetRepository() != t.Origin.Repository:
		return notOwn("repository", r.GetRepository(), t.Origin.Repository)
	case r.GetRunId() != t.Origin.RunID:
		return notOwn("run_id", r.GetRunId(), t.Origin.RunID)
	}
	switch r := req.(type) {
	case *remudav1.ProvisionRequest:
		return ownAttempt(t, &r.RunAttempt)
	case *remudav1.ReleaseRequest:
		return ownAttempt(t, &r.RunAttempt)
	}
	return nil
}

func ownAttempt(t *Token, attempt **int32) error {
	own := int32(t.RunAttempt)
	if *attempt != nil && **attempt != own {
		return notOwn("run_attempt", fmt.Sprint(**attempt), fmt.Sprint(own))
	}
	*attempt = &own
	return nil
}

// notOwn is PERMISSION_DENIED for a field that is not as the token has it.
func notOwn(field, asked, own string) error {
	return violation(codes.PermissionDenied, field, fmt.Sprintf("%s is not the ID token's, which is %s", asked, own))
}

// authorize checks what a workflow asks for by the rule of its repository, and fills in
// the defaults that the rule defines. Operators may ask for anything.
func (s *service) authorize(ctx context.Context, d fleet.Demand) (fleet.Demand, error) {
	c := callerOf(ctx)
	if c.token == nil {
		return d, nil
	}
	o := c.token.Origin
	d.Workflow = c.token.Workflow
	rule, _ := s.callers.Rules.Find(o.RepositoryID, o.OwnerID)
	d.Spec = s.withDefaults(d.Spec, rule)
	verdict, err := s.admit(ctx, o, d.Spec, rule)
	if err == nil && !verdict.Allowed {
		err = status.Error(codes.PermissionDenied, verdict.Reason)
	}
	about := []any{logkey.Repository, d.Repository, logkey.Run, d.RunID, logkey.Request, d.RequestID}
	audit(ctx, s.log, remudav1.FleetService_Provision_FullMethodName, about, err, verdict.Reason)
	d.MaxHosts = rule.MaxHosts
	return d, err
}

// admit applies the rule. It asks GitHub about forks last, since that costs a call.
func (s *service) admit(ctx context.Context, o policy.Origin, spec lifecycle.Spec, rule policy.Rule) (policy.Verdict, error) {
	if o.FromPullRequest() && !rule.Forks && s.callers.Fork != nil {
		o.Fork = policy.ForkNo
		if _, verdict := s.callers.Rules.Admit(o, spec); !verdict.Allowed {
			return verdict, nil
		}
		ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
		defer cancel()
		fork, err := s.callers.Fork(ctx, o.Repository, o.RunID)
		switch {
		case errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil:
			return policy.Verdict{}, unavailable(fmt.Errorf("ask whether run %s is of a fork: %w; try again with a new ID token", o.RunID, err))
		case err != nil:
			s.log.Warn("unknown whether a run is of a fork", logkey.Repository, o.Repository, logkey.Run, o.RunID, logkey.Error, err)
			fork = policy.ForkUnknown
		}
		o.Fork = fork
	}
	_, verdict := s.callers.Rules.Admit(o, spec)
	return verdict, nil
}

// withDefaults fills in the defaults of the fields that rules are about. The fleet would
// fill in the same values, so the admitted request is the one that is carried out.
func (s *service) withDefaults(spec lifecycle.Spec, rule policy.Rule) lifecycle.Spec {
	spec.Pool = cmp.Or(spec.Pool, fleet.DefaultPool)
	spec.ResourceClass = cmp.Or(spec.ResourceClass, fleet.DefaultResourceClass)
	spec.UsageClass = cmp.Or(spec.UsageClass, lifecycle.UsageOnDemand)
	spec.Count = cmp.Or(spec.Count, 1)
	spec.MaxRuntime = cmp.Or(spec.MaxRuntime, rule.Runtime(s.fleet.Pools()[spec.Pool].Policy.MaxRuntime))
	return spec
}

// audit logs a decision about a call: the caller, the method and the reason.
func audit(ctx context.Context, log hclog.Logger, method string, about []any, err error, reason string) {
	decision := "allowed"
	if err != nil {
		decision, reason = "refused", status.Convert(err).Message()
	}
	args := append([]any{logkey.Method, method, logkey.Caller, callerOf(ctx).name, logkey.Decision, decision, logkey.Reason, reason}, about...)
	log.Info("admission", args...)
}

// access is who may call a method.
type access struct {
	// least is the role that an operator needs.
	least policy.Role
	// run lets a workflow call it, for its own run.
	run bool
	// worker lets a worker call it, for the services of its token.
	worker bool
}

// accesses says who may call each of our methods. A method that is not listed is refused to all.
var accesses = map[string]access{
	remudav1.FleetService_Provision_FullMethodName:         {policy.RoleOperator, true, false},
	remudav1.FleetService_Release_FullMethodName:           {policy.RoleOperator, true, false},
	remudav1.FleetService_Refresh_FullMethodName:           {policy.RoleOperator, false, false},
	remudav1.FleetService_HoldInstance_FullMethodName:      {policy.RoleOperator, false, false},
	remudav1.FleetService_Drain_FullMethodName:             {policy.RoleOperator, false, false},
	remudav1.FleetService_DropCache_FullMethodName:         {policy.RoleOperator, false, false},
	remudav1.FleetService_PausePool_FullMethodName:         {policy.RoleOperator, false, false},
	remudav1.FleetService_ResumePool_FullMethodName:        {policy.RoleOperator, false, false},
	remudav1.FleetService_GetInstance_FullMethodName:       {policy.RoleViewer, false, false},
	remudav1.FleetService_ListInstances_FullMethodName:     {policy.RoleViewer, false, false},
	remudav1.FleetService_ListPools_FullMethodName:         {policy.RoleViewer, false, false},
	remudav1.FleetService_WatchFleet_FullMethodName:        {policy.RoleViewer, false, false},
	remudav1.FleetService_ExplainRun_FullMethodName:        {policy.RoleViewer, true, false},
	remudav1.FleetService_TerminateInstance_FullMethodName: {policy.RoleAdmin, false, false},
	remudav1.FleetService_HoldFleet_FullMethodName:         {policy.RoleAdmin, false, false},
	remudav1.FleetService_NudgeService_FullMethodName:      {policy.RoleOperator, false, false},
	remudav1.FleetService_ListServices_FullMethodName:      {policy.RoleViewer, false, false},
	remudav1.FleetService_ListEvents_FullMethodName:        {policy.RoleViewer, false, false},
	remudav1.FleetService_PlanScaleDown_FullMethodName:     {policy.RoleViewer, false, false},
	remudav1.FleetService_ListWaiting_FullMethodName:       {policy.RoleViewer, false, false},
	remudav1.FleetService_GetCost_FullMethodName:           {policy.RoleViewer, false, false},
	remudav1.FleetService_ListBudgets_FullMethodName:       {policy.RoleViewer, false, false},
	remudav1.FleetService_GetStatus_FullMethodName:         {policy.RoleViewer, false, false},

	remudav1.WorkerService_SubmitJob_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_Heartbeat_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_ClaimJob_FullMethodName:     {policy.RoleOperator, false, true},
	remudav1.WorkerService_AppendJobLog_FullMethodName: {policy.RoleOperator, false, true},
	remudav1.WorkerService_FinishJob_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_GetJob_FullMethodName:       {policy.RoleViewer, false, true},
	remudav1.WorkerService_ListJobs_FullMethodName:     {policy.RoleViewer, false, true},
	remudav1.WorkerService_ListWorkers_FullMethodName:  {policy.RoleViewer, false, true},
}

// ours reports whether a method is of the fleet or of workers, and not of health
// or reflection, which tell nothing and are open to all.
func ours(method string) bool {
	return strings.HasPrefix(method, "/"+remudav1.FleetService_ServiceDesc.ServiceName+"/") || ofWorkers(method)
}

// ofWorkers reports whether a method is of the WorkerService.
func ofWorkers(method string) bool {
	return strings.HasPrefix(method, "/"+remudav1.WorkerService_ServiceDesc.ServiceName+"/")
}

// short is a method's name without its service, for sentences.
func short(method string) string { return method[strings.LastIndex(method, "/")+1:] }

// admit refuses unknown callers, and those that may not call the method at all
// (docs/design.md#security). It logs its decision with what the call is about.
func (e *interceptors) admit(ctx context.Context, method string, about []any) error {
	if !ours(method) {
		return nil
	}
	c, err := e.identify(ctx, method)
	return e.admitted(ctx, c, err, method, about)
}

// admitted notes the caller of a call, or why it is not known, and refuses one that may not call the method.
func (e *interceptors) admitted(ctx context.Context, c caller, err error, method string, about []any) error {
	*callerOf(ctx) = c
	if err == nil {
		err = c.mayCall(method)
	}
	audit(ctx, e.log, method, about, err, c.standing())
	return err
}

// standing is why a caller may call at all.
func (c caller) standing() string {
	if c.token != nil {
		return "its ID token is good, and its repository has a rule"
	}
	if c.services != nil {
		return "its worker token is good"
	}
	return "it has the role " + string(c.role)
}

// mayCall says whether a caller may call a method, for whichever run or host.
func (c caller) mayCall(method string) error {
	a, known := accesses[method]
	switch {
	case !known:
		return status.Errorf(codes.PermissionDenied, "no role may call %s", short(method))
	case c.token != nil && !a.run:
		return status.Errorf(codes.PermissionDenied, "a workflow may call Provision, Release and ExplainRun of its own run, and not %s", short(method))
	case c.services != nil && !a.worker:
		return status.Errorf(codes.PermissionDenied, "a worker may call the WorkerService, and not %s", short(method))
	case c.services != nil:
		return nil
	case c.token == nil && !c.role.Includes(a.least):
		return status.Errorf(codes.PermissionDenied, "%s may not call %s: it has the role %s, and needs %s", c.name, short(method), c.role, a.least)
	}
	return nil
}

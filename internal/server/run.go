package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// ownRunUnary holds the request of a workflow against its token.
func (e *edge) ownRunUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if t := callerOf(ctx).token; t != nil && ours(info.FullMethod) {
		if err := ownRun(t, req); err != nil {
			decided(ctx, e.log, info.FullMethod, naming(req), err, "")
			return nil, err
		}
	}
	return next(ctx, req)
}

// ownRun refuses a request that is about another run than the token's, and
// fills in the attempt.
func ownRun(t *Token, req any) error {
	if r, ok := req.(*remudav1.ExplainRunRequest); ok && r.GetInstanceId() != "" {
		return nil // the host's record says of which run it is: see explanation
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
	return refused(field, fmt.Sprintf("%s is not the ID token's, which is %s", asked, own))
}

// refused is PERMISSION_DENIED for a field and the rule that it broke.
func refused(field, rule string) error {
	return withDetails(status.Error(codes.PermissionDenied, field+": "+rule), &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: rule}},
	})
}

// admitted holds what a workflow asks for against the rule of its repository,
// and fills in what the rule has a say in. Operators may ask for anything.
func (s *service) admitted(ctx context.Context, d fleet.Demand) (fleet.Demand, error) {
	c := callerOf(ctx)
	if c.token == nil {
		return d, nil
	}
	o := c.token.Origin
	rule, _ := s.callers.Rules.Find(o.RepositoryID, o.OwnerID)
	d.Spec = s.filled(d.Spec, rule)
	verdict, err := s.judge(ctx, o, d.Spec, rule)
	if err == nil && !verdict.Allowed {
		err = status.Error(codes.PermissionDenied, verdict.Reason)
	}
	about := []any{"repository", d.Repository, "run", d.RunID, "request", d.RequestID}
	decided(ctx, s.log, remudav1.FleetService_Provision_FullMethodName, about, err, verdict.Reason)
	d.MaxHosts = rule.MaxHosts
	return d, err
}

// judge asks GitHub about forks only when all else is fine: it costs a call.
func (s *service) judge(ctx context.Context, o policy.Origin, spec lifecycle.Spec, rule policy.Rule) (policy.Verdict, error) {
	if o.FromPullRequest() && !rule.Forks && s.callers.Fork != nil {
		o.Fork = policy.ForkNo
		if _, verdict := s.callers.Rules.Admit(o, spec); !verdict.Allowed {
			return verdict, nil
		}
		ctx, cancel := context.WithTimeout(ctx, identifyWithin)
		defer cancel()
		fork, err := s.callers.Fork(ctx, o.Repository, o.RunID)
		switch {
		case errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil:
			return policy.Verdict{}, unavailable(fmt.Errorf("ask whether run %s is of a fork: %w; try again with a new ID token", o.RunID, err))
		case err != nil:
			s.log.Warn("not known whether a run is of a fork", "repository", o.Repository, "run", o.RunID, "error", err)
			fork = policy.ForkUnknown
		}
		o.Fork = fork
	}
	_, verdict := s.callers.Rules.Admit(o, spec)
	return verdict, nil
}

// filled fills in the defaults that a rule is about, as the fleet would, so
// that what is admitted is what is asked for.
func (s *service) filled(spec lifecycle.Spec, rule policy.Rule) lifecycle.Spec {
	if spec.Pool == "" {
		spec.Pool = fleet.DefaultPool
	}
	if spec.ResourceClass == "" {
		spec.ResourceClass = fleet.DefaultResourceClass
	}
	if spec.UsageClass == "" {
		spec.UsageClass = lifecycle.UsageOnDemand
	}
	if spec.Count == 0 {
		spec.Count = 1
	}
	if spec.MaxRuntime == 0 {
		spec.MaxRuntime = rule.Runtime(s.fleet.Pools()[spec.Pool].Policy.MaxRuntime)
	}
	return spec
}

// decided logs a decision about a call: who, what, and why.
func decided(ctx context.Context, log hclog.Logger, method string, about []any, err error, why string) {
	decision := "allowed"
	if err != nil {
		decision, why = "refused", status.Convert(err).Message()
	}
	args := append([]any{"method", method, "caller", callerOf(ctx).name, "decision", decision, "why", why}, about...)
	log.Info("admission", args...)
}

package server

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// admit refuses unknown callers, and those that may not call the method at all
// (docs/design.md#security). It logs its decision with what the call is about.
func (e *interceptors) admit(ctx context.Context, method string, about []any) error {
	if !ours(method) {
		return nil
	}
	c, err := e.identify(ctx, method)
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

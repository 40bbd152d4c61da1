package main

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// hostRole is the role of an instance profile. Its id is the prefix of every host key. IAM answers from one region for all of
// a partition, so the id is kept in the store: while IAM is away, a controld that starts takes it from there.
type hostRole struct {
	id      string
	profile string
	store   fleet.Store
	log     hclog.Logger
}

// findHostRole asks IAM for the role, and the store if IAM does not answer.
func findHostRole(ctx context.Context, cfg sdk.Config, profile string, store fleet.Store, log hclog.Logger) (hostRole, error) {
	r := hostRole{profile: profile, store: store, log: log}
	id, err := hostRoleID(ctx, cfg, profile)
	if errors.Is(err, lifecycle.ErrUnavailable) {
		kept, storeErr := store.Lease(ctx, r.row())
		if storeErr == nil && kept.Holder != "" {
			log.Warn("IAM does not answer; the hosts' role is taken from the store", logkey.Error, err)
			id, err = kept.Holder, nil
		}
	}
	r.id = id
	return r, err
}

// row is the name of the lease that has the role's id as its holder. A profile has one role.
func (r hostRole) row() string { return "host-role/" + r.profile }

// keep writes the id for later starts. Without the tables of the first Refresh it cannot.
func (r hostRole) keep(ctx context.Context) {
	kept, err := r.store.Lease(ctx, r.row())
	if err == nil && kept.Holder == r.id {
		return
	}
	if err == nil || errors.Is(err, lifecycle.ErrNotFound) {
		_, err = r.store.TakeLease(ctx, replicas.Lease{Name: r.row(), Holder: r.id, Version: kept.Version})
	}
	if err != nil && !errors.Is(err, lifecycle.ErrConflict) { // another replica wrote it
		r.log.Warn("the hosts' role is not kept for a start without IAM", logkey.Error, err)
	}
}

// keptAfter keeps the id after a Refresh, which may have made the table for it.
func (r hostRole) keptAfter(ensure fleet.Ensure) fleet.Ensure {
	return func(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
		changes, err := ensure(ctx, dryRun)
		if err == nil && !dryRun {
			r.keep(ctx)
		}
		return changes, err
	}
}

// hostRoleID asks IAM for the id of an instance profile's role.
func hostRoleID(ctx context.Context, cfg sdk.Config, profile string) (string, error) {
	what := "aws.instance_profile: find the role of " + profile
	out, err := iam.NewFromConfig(cfg).GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &profile})
	switch {
	case err != nil && aws.ClassOf(err) == aws.Gone:
		return "", &configError{aws.Refused(what, err, "create it (docs/iam), or write the name of another")}
	case err != nil:
		return "", aws.Wrap(what, err)
	case len(out.InstanceProfile.Roles) != 1:
		return "", &configError{fmt.Errorf("%s: it has no role; add one (docs/iam)", what)}
	}
	return sdk.ToString(out.InstanceProfile.Roles[0].RoleId), nil
}

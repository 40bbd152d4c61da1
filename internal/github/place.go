package github

import (
	"context"
	"strings"

	api "github.com/google/go-github/v62/github"
)

// place is where the hosts of a repository register their runners: the repository or its organization.
type place struct {
	owner, name  string
	organization bool
}

// String is "owner/name", or "owner" where runners belong to the organization.
func (p place) String() string {
	if p.organization {
		return p.owner
	}
	return p.owner + "/" + p.name
}

// key is the same for all ways to write a place: GitHub does not tell the cases apart.
func (p place) key() string { return strings.ToLower(p.String()) }

// mintedToken is a token for registrations, or one for their removal.
type mintedToken interface {
	GetToken() string
	GetExpiresAt() api.Timestamp
}

func (p place) createRegistrationToken(ctx context.Context, a *api.Client) (mintedToken, *api.Response, error) {
	if p.organization {
		return a.Actions.CreateOrganizationRegistrationToken(ctx, p.owner)
	}
	return a.Actions.CreateRegistrationToken(ctx, p.owner, p.name)
}

func (p place) createRemoveToken(ctx context.Context, a *api.Client) (mintedToken, *api.Response, error) {
	if p.organization {
		return a.Actions.CreateOrganizationRemoveToken(ctx, p.owner)
	}
	return a.Actions.CreateRemoveToken(ctx, p.owner, p.name)
}

func (p place) generateJIT(ctx context.Context, a *api.Client, r *api.GenerateJITConfigRequest) (*api.JITRunnerConfig, *api.Response, error) {
	if p.organization {
		return a.Actions.GenerateOrgJITConfig(ctx, p.owner, r)
	}
	return a.Actions.GenerateRepoJITConfig(ctx, p.owner, p.name, r)
}

func (p place) listRunners(ctx context.Context, a *api.Client, o *api.ListRunnersOptions) (*api.Runners, *api.Response, error) {
	if p.organization {
		return a.Actions.ListOrganizationRunners(ctx, p.owner, o)
	}
	return a.Actions.ListRunners(ctx, p.owner, p.name, o)
}

func (p place) getRunner(ctx context.Context, a *api.Client, id int64) (*api.Runner, *api.Response, error) {
	if p.organization {
		return a.Actions.GetOrganizationRunner(ctx, p.owner, id)
	}
	return a.Actions.GetRunner(ctx, p.owner, p.name, id)
}

func (p place) removeRunner(ctx context.Context, a *api.Client, id int64) (*api.Response, error) {
	if p.organization {
		return a.Actions.RemoveOrganizationRunner(ctx, p.owner, id)
	}
	return a.Actions.RemoveRunner(ctx, p.owner, p.name, id)
}

func (p place) findInstallation(ctx context.Context, a *api.Client) (*api.Installation, *api.Response, error) {
	if p.organization {
		return a.Apps.FindOrganizationInstallation(ctx, p.owner)
	}
	return a.Apps.FindRepositoryInstallation(ctx, p.owner, p.name)
}

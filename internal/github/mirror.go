package github

import (
	"context"
	"errors"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// errNoApp means that the client has the token of a user, which cannot be narrowed to one repository.
var errNoApp = errors.New("only a GitHub App can give a host a token that reads one repository")

// Mirror returns what a host needs to fetch a branch of a repository: a token that reads the contents of this repository alone, good for at least 10
// minutes. It is shared by the hosts of the repository. The App needs contents:read.
func (c *Client) Mirror(ctx context.Context, repository, branch string) (lifecycle.Mirror, error) {
	if c.token != nil {
		return lifecycle.Mirror{}, errNoApp
	}
	op, err := c.aboutRuns("create a token that reads", repository, housekeeping)
	if err != nil {
		return lifecycle.Mirror{}, err
	}
	m, err := c.mirrors.get(ctx, op.target().key(), func(ctx context.Context) (lifecycle.Mirror, time.Time, error) {
		secret, expiresAt, err := c.readToken(ctx, op)
		m := lifecycle.Mirror{URL: c.web + "/" + op.target().String() + ".git", Token: secret, ExpiresAt: expiresAt}
		return m, expiresAt.Add(-renewBefore), err
	})
	m.Branch = branch
	return m, err
}

// readToken creates a token of the first App that is installed there.
func (c *Client) readToken(ctx context.Context, op operation) (secret lifecycle.Secret, expiresAt time.Time, err error) {
	narrowed := &api.InstallationTokenOptions{
		Repositories: []string{op.target().name}, Permissions: &api.InstallationPermissions{Contents: api.String("read")},
	}
	var errs []error
	for _, a := range c.apps {
		found, err := a.installed(ctx, op.at)
		if err == nil {
			secret, expiresAt, err = a.createToken(ctx, found.id, op.target(), narrowed)
		}
		if err == nil {
			return secret, expiresAt, nil
		}
		errs = append(errs, err)
	}
	return "", time.Time{}, worst(errs)
}

package github

import (
	"context"
	"errors"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// renewBefore is how long before its expiry a token is replaced. GitHub's tokens live for an hour; the port
// promises 10 minutes, and two more cover the way to the host and a clock that is off.
const renewBefore = 12 * time.Minute

// RegistrationToken returns a token with which hosts register for a repository, or its organization. It is
// good for at least 10 minutes, and shared: GitHub lets any number of hosts use one, and limits how many are
// minted. Who asks for one is about to have hosts register: while GitHub does not answer they cannot, and
// then what is remembered is not given out.
func (c *Client) RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	return c.registration(ctx, lifecycle.RegistrationToken, "create a registration token", repository, place.createRegistrationToken)
}

// RemoveToken returns a token with which hosts deregister, as long-lived and shared.
func (c *Client) RemoveToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	return c.registration(ctx, lifecycle.RegistrationRemove, "create a remove token", repository, place.createRemoveToken)
}

// create is one of the calls that mint.
type create func(place, context.Context, *api.Client) (mintedToken, *api.Response, error)

func (c *Client) registration(ctx context.Context, kind lifecycle.RegistrationKind, what, repository string, f create) (lifecycle.Registration, error) {
	op, err := c.about(what, repository, registering, registrations)
	if err != nil {
		return lifecycle.Registration{}, err
	}
	key := string(kind) + " " + op.at.key()
	if kind == lifecycle.RegistrationToken && c.breaker.doubtful() {
		c.minted.forget(key)
	}
	return c.minted.get(ctx, key, func(ctx context.Context) (lifecycle.Registration, time.Time, error) {
		r, err := c.mint(ctx, op, f)
		r.Kind = kind
		if kind == lifecycle.RegistrationToken {
			r.RunnerGroup = c.runnerGroup
		}
		return r, r.ExpiresAt.Add(-renewBefore), err
	})
}

func (c *Client) mint(ctx context.Context, op operation, f create) (lifecycle.Registration, error) {
	token, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (mintedToken, *api.Response, error) { return f(op.at, ctx, a) })
	if err != nil {
		return lifecycle.Registration{}, err
	}
	r := lifecycle.Registration{URL: c.web + "/" + op.at.String(), Secret: lifecycle.Secret(token.GetToken()), ExpiresAt: token.GetExpiresAt().Time}
	if r.Secret == "" || r.ExpiresAt.IsZero() {
		err = unavailable(op, 0, errors.New("the answer has no token or no expiry"))
	}
	return r, err
}

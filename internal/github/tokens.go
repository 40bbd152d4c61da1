package github

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// renewBefore is how long before its expiry a token is minted anew. GitHub's
// live for an hour; the port promises 10 minutes, and two more cover the way
// to the host and a clock that is off.
const renewBefore = 12 * time.Minute

// registrationKey names what a token is good for.
type registrationKey struct {
	kind       lifecycle.RegistrationKind
	repository string // in lower case: GitHub does not tell the cases apart
}

// registrations are the tokens minted so far. GitHub lets any number of hosts
// use one, and limits how many are minted.
type registrations struct {
	mu sync.Mutex
	of map[registrationKey]lifecycle.Registration
}

// get returns a token that is good for a while yet.
func (rs *registrations) get(k registrationKey, now time.Time) (lifecycle.Registration, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, ok := rs.of[k]
	return r, ok && r.ExpiresAt.Sub(now) >= renewBefore
}

// put keeps a token and lets go of those that have expired.
func (rs *registrations) put(k registrationKey, r lifecycle.Registration, now time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for other, old := range rs.of {
		if !old.ExpiresAt.After(now) {
			delete(rs.of, other)
		}
	}
	if rs.of == nil {
		rs.of = map[registrationKey]lifecycle.Registration{}
	}
	rs.of[k] = r
}

// RegistrationToken returns a token with which hosts register for a repository.
func (c *Client) RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	return c.registration(ctx, lifecycle.RegistrationToken, repository)
}

// RemoveToken returns a token with which hosts deregister from a repository.
func (c *Client) RemoveToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	return c.registration(ctx, lifecycle.RegistrationRemove, repository)
}

func (c *Client) registration(ctx context.Context, kind lifecycle.RegistrationKind, repository string) (lifecycle.Registration, error) {
	k := registrationKey{kind, strings.ToLower(repository)}
	if r, ok := c.minted.get(k, time.Now()); ok {
		return r, nil
	}
	// Callers share one minting. None of them may end it for the others, so it
	// goes on without them; its own deadline bounds it.
	shared := c.minting.DoChan(string(kind)+" "+k.repository, func() (any, error) {
		return c.mint(context.WithoutCancel(ctx), k, repository)
	})
	select {
	case <-ctx.Done():
		return lifecycle.Registration{}, context.Cause(ctx)
	case result := <-shared:
		if result.Err != nil {
			return lifecycle.Registration{}, result.Err
		}
		return result.Val.(lifecycle.Registration), nil
	}
}

func (c *Client) mint(ctx context.Context, k registrationKey, repository string) (lifecycle.Registration, error) {
	if r, ok := c.minted.get(k, time.Now()); ok {
		return r, nil // the minting that ended just before this one began
	}
	op := operation{"create a registration token", repository}
	create := c.createRegistrationToken
	if k.kind == lifecycle.RegistrationRemove {
		op.what = "create a remove token"
		create = c.createRemoveToken
	}
	r := lifecycle.Registration{Kind: k.kind, URL: c.web + "/" + repository}
	err := c.do(ctx, op, func(ctx context.Context, owner, name string) (*api.Response, error) {
		token, expires, response, err := create(ctx, owner, name)
		r.Secret, r.ExpiresAt = lifecycle.Secret(token), expires.Time
		return response, err
	})
	if err != nil {
		return lifecycle.Registration{}, err
	}
	if r.Secret == "" || r.ExpiresAt.IsZero() {
		return lifecycle.Registration{}, unavailable(op, 0, errors.New("the answer has no token or no expiry"))
	}
	c.minted.put(k, r, time.Now())
	return r, nil
}

func (c *Client) createRegistrationToken(ctx context.Context, owner, name string) (string, api.Timestamp, *api.Response, error) {
	t, response, err := c.api.Actions.CreateRegistrationToken(ctx, owner, name)
	return t.GetToken(), t.GetExpiresAt(), response, err
}

func (c *Client) createRemoveToken(ctx context.Context, owner, name string) (string, api.Timestamp, *api.Response, error) {
	t, response, err := c.api.Actions.CreateRemoveToken(ctx, owner, name)
	return t.GetToken(), t.GetExpiresAt(), response, err
}

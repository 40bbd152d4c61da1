// Package github talks to the GitHub API: the public one, a GitHub Enterprise
// Server, or the stand-in. It mints the tokens with which hosts register and
// deregister, and tells of registrations.
package github

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	api "github.com/google/go-github/v62/github"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// callTimeout bounds a call with its retries. GitHub itself gives up on a
	// request after 10 s, so nothing is won by waiting longer.
	callTimeout = 10 * time.Second
	// maxAttempts, firstBackoff and maxBackoff fit three tries into a call.
	maxAttempts  = 3
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// retriesPerSecond and retriesAtOnce are the budget that all calls share:
	// when GitHub is down, three replicas must not become nine.
	retriesPerSecond = 1
	retriesAtOnce    = 10
)

// Config is what a Client is made of. URL and Token are required.
type Config struct {
	// URL is the base of the API: https://api.github.com, or
	// https://HOST/api/v3. Plain http is for loopback only.
	URL string
	// Token authenticates each call.
	Token TokenSource
	// Transport carries the calls; nil: one of its own. The credentials are
	// added above it, so it must not log headers.
	Transport http.RoundTripper
	Log       hclog.Logger
}

// Client is the adapter of the fleet's GitHub port. It is safe for concurrent
// use.
type Client struct {
	api     *api.Client
	web     string
	log     hclog.Logger
	retries *rate.Limiter

	minting singleflight.Group
	minted  registrations
}

// New checks the configuration and returns a Client. It makes no call.
func New(c Config) (*Client, error) {
	base, err := parseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("new GitHub client: %w", err)
	}
	if c.Token == nil {
		return nil, errors.New("new GitHub client: a token source is required")
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	if c.Log == nil {
		c.Log = hclog.NewNullLogger()
	}
	client := api.NewClient(&http.Client{Transport: &authorized{token: c.Token, base: base, next: c.Transport}})
	client.BaseURL = base
	client.UserAgent = "remuda"
	return &Client{
		api: client, web: webURL(base), log: c.Log,
		retries: rate.NewLimiter(retriesPerSecond, retriesAtOnce),
	}, nil
}

// operation names a call in errors and logs.
type operation struct {
	what       string // such as "create a remove token"
	repository string
}

func (o operation) String() string { return o.what + " for " + o.repository }

// call is one request to the API.
type call func(ctx context.Context, owner, name string) (*api.Response, error)

// do makes a call that is safe to repeat, and repeats it while that may help.
func (c *Client) do(ctx context.Context, op operation, f call) error {
	owner, name, err := splitRepository(op.repository)
	if err != nil {
		return fmt.Errorf("%s: %w", op.what, err)
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		started := time.Now()
		response, err := f(bounded, owner, name)
		c.log.Debug("called github", "call", op.what, "repository", op.repository,
			"status", statusOf(response), "took", time.Since(started))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		}
		err = classify(op, err, time.Now())
		if attempt == maxAttempts || !transient(err) || !c.retries.Allow() || !pause(bounded, attempt) {
			return err
		}
	}
}

// transient reports whether a second try may help at once. Where GitHub says
// how long to wait, waiting is the caller's business.
func transient(err error) bool {
	var u *lifecycle.UnavailableError
	return errors.As(err, &u) && u.RetryAfter == 0
}

// pause waits before the next attempt, with full jitter below a cap that
// doubles. It reports whether ctx still has time.
func pause(ctx context.Context, attempt int) bool {
	limit := min(firstBackoff<<(attempt-1), maxBackoff)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(limit))) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func statusOf(r *api.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}

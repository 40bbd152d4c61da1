// Package github talks to the GitHub API: the public one, a GitHub Enterprise Server, or the stand-in. It
// mints the tokens and configurations with which hosts register and deregister, and reads registrations,
// runs, jobs and lost webhooks. It calls with a token or as one or more Apps, within GitHub's limits.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	api "github.com/google/go-github/v62/github"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
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

// Config is what a Client is made of. URL and one of Token and Apps are required.
type Config struct {
	// URL is the base of the API: https://api.github.com, or
	// https://HOST/api/v3. Plain http is for loopback only.
	URL string
	// Token authenticates each call.
	Token TokenSource
	// Apps authenticate the calls instead of a token. Each call is made by the
	// one, of those installed on its repository, that has the most calls left.
	Apps []App
	// Organization says that runners belong to a repository's organization, not to the repository.
	Organization bool
	// RunnerGroup is the name of the group that an organization's runners join; empty: Default.
	RunnerGroup string
	// Transport carries the calls; nil: that of NewTransport without authorities. The credentials are added
	// above it, so it must not log headers.
	Transport http.RoundTripper
	// Replicas returns how many replicas share the credentials, and with them GitHub's limits; nil: this one alone.
	Replicas func() int
	Log      hclog.Logger
}

// Client is the adapter of the fleet's GitHub ports. It is safe for concurrent use.
type Client struct {
	base         *url.URL
	web          string
	organisation bool
	runnerGroup  string
	transport    http.RoundTripper
	replicas     func() int
	log          hclog.Logger

	token     *credential // nil: apps
	apps      []*app
	anonymous *credential // calls without credentials
	answers   *answers

	retries *rate.Limiter
	breaker breaker
	minted  *memo[lifecycle.Registration]
	groups  *memo[int64]
	looks   *memo[struct{}]

	sources  *memo[cache.Source]
	branches *memo[cache.Branch]
	mirrors  *memo[lifecycle.Mirror]
}

// New checks the configuration and returns a Client. It makes no call.
func New(c Config) (*Client, error) {
	base, err := parseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("new GitHub client: %w", err)
	}
	if (c.Token == nil) == (len(c.Apps) == 0) {
		return nil, errors.New("new GitHub client: either a token source or Apps are required")
	}
	if c.RunnerGroup != "" && !c.Organization {
		return nil, errors.New("new GitHub client: a repository's runners have no group")
	}
	if c.Transport == nil {
		if c.Transport, err = NewTransport(nil); err != nil {
			return nil, fmt.Errorf("new GitHub client: %w", err)
		}
	}
	c.Log = cmp.Or(c.Log, hclog.NewNullLogger())
	if c.Replicas == nil {
		c.Replicas = func() int { return 1 }
	}
	client := &Client{
		base: base, web: webURL(base), organisation: c.Organization, runnerGroup: c.RunnerGroup,
		transport: c.Transport, replicas: c.Replicas, log: c.Log, answers: newLRU[string, *storedAnswer](maxAnswers, answersUnused),
		retries: rate.NewLimiter(retriesPerSecond, retriesAtOnce),
		minted:  newMemo[lifecycle.Registration](), groups: newMemo[int64](), looks: newMemo[struct{}](),
		sources: newMemo[cache.Source](), branches: newMemo[cache.Branch](), mirrors: newMemo[lifecycle.Mirror](),
	}
	client.anonymous = client.newCredential("anonymous", c.Transport)
	if c.Token != nil {
		client.token = client.bearing("token", c.Token)
	}
	for i, a := range c.Apps {
		made, err := client.newApp(a)
		if err != nil {
			return nil, fmt.Errorf("new GitHub client: apps[%d]: %w", i, err)
		}
		client.apps = append(client.apps, made)
	}
	return client, nil
}

// bearing makes a credential that calls with a token, and makes its reads conditional.
func (c *Client) bearing(name string, token TokenSource) *credential {
	return c.newCredential(name, &conditional{name, c.answers, &bearer{token, c.transport}})
}

// Budgets tells what GitHub lets each credential do, as far as it has said.
func (c *Client) Budgets() []Budget {
	var who []*credential
	if c.token != nil {
		who = append(who, c.token)
	}
	for _, a := range c.apps {
		who = append(append(who, a.itself), a.installations()...)
	}
	var all []Budget
	for _, w := range who {
		all = append(all, w.budget.told(w.name)...)
	}
	return all
}

// do makes a call that is safe to repeat, and repeats it while that may help.
func (c *Client) do(ctx context.Context, op operation, f call) error {
	choose := op.as
	if choose == nil {
		choose = func(ctx context.Context) (*credential, error) { return c.choose(ctx, op.at, op.kind) }
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var before *credential
	for attempt := 1; ; attempt++ {
		who, err := choose(bounded)
		if err == nil {
			err = c.once(ctx, bounded, who, op, f)
		} else {
			err = &credentialsError{err}
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		}
		err = classify(op, err)
		if attempt == maxAttempts || !c.mayHelp(bounded, err, who, who != before, attempt) {
			return err
		}
		before = who
	}
}

// mayHelp reports whether to try again, after it waited for that. first says
// that who had not been tried right before.
func (c *Client) mayHelp(ctx context.Context, err error, who *credential, first bool, attempt int) bool {
	var rest *restError
	var credentials *credentialsError
	switch {
	case errors.As(err, &credentials):
		return false // it was tried again already
	case errors.As(err, &rest):
		return len(c.apps) > 1 && first // another App may have calls left
	case hasStatus(err, http.StatusUnauthorized) && who.renew != nil && first:
		who.renew()
		return true
	}
	return transient(err) && c.retries.Allow() && pause(ctx, attempt)
}

// once makes one call, if it may be made now. The breaker learns how it ended, unless its caller gave it up.
func (c *Client) once(caller, ctx context.Context, who *credential, op operation, f call) error {
	if err := who.enter(ctx, op, &c.breaker); err != nil {
		return err
	}
	defer who.leave(op)
	started := time.Now()
	response, err := f(context.WithValue(ctx, kindKey{}, op.kind), who.api)
	c.log.Debug("called github", logkey.Call, op.String(), logkey.App, who.name, logkey.Status, statusOf(response, err), logkey.Took, time.Since(started))
	var credentials *credentialsError
	switch {
	case errors.As(err, &credentials), caller.Err() != nil:
	case err != nil && transient(classify(op, err)):
		c.breaker.failed(time.Now())
	default:
		c.breaker.answered()
	}
	return err
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
	d := retry.Backoff{Base: firstBackoff, Max: maxBackoff}.Pause(attempt, rand.Float64())
	return retry.Sleep(ctx, d+time.Millisecond) == nil
}

func statusOf(r *api.Response, err error) int {
	var rest *restError
	switch {
	case errors.As(err, &rest):
		return rest.status
	case r == nil || r.Response == nil:
		return 0
	}
	return r.StatusCode
}

// lane says who waits for a call. While little is left of a rate limit, only the registering lane goes on.
type lane int

const (
	registering  lane = iota // a run or a host waits for it
	housekeeping             // a sweep does, and will come again
)

// operation is what a call is for.
type operation struct {
	what string // for errors and logs, such as "create a remove token"
	at   place  // zero: the App itself, or public
	lane lane
	pace pace
	kind kind
	// ofRepository says that it is about the repository, even where runners belong to the organization.
	ofRepository bool
	// needs is the permission that it takes beside the usual ones; empty: those are enough.
	needs string
	// as tells who makes the call; nil: who may call about the place, and has the most calls left.
	as chooser
}

// about is an operation of runners of a repository's place.
func (c *Client) about(what, repository string, l lane, p pace) (operation, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return operation{}, fmt.Errorf("%s: %w", what, err)
	}
	return operation{what: what, at: place{owner, name, c.organisation}, lane: l, pace: p}, nil
}

// aboutRuns is an operation of runs and jobs, which a repository always has.
func (c *Client) aboutRuns(what, repository string, l lane) (operation, error) {
	op, err := c.about(what, repository, l, reads)
	op.ofRepository = true
	return op, err
}

// target is what the operation is about.
func (o operation) target() place {
	at := o.at
	at.organization = at.organization && !o.ofRepository
	return at
}

func (o operation) String() string {
	if o.at == (place{}) {
		return o.what
	}
	return o.what + " for " + o.target().String()
}

// call is one request to the API.
type call func(ctx context.Context, a *api.Client) (*api.Response, error)

// chooser tells who makes a call.
type chooser func(ctx context.Context) (*credential, error)

// fetch makes a call and returns what it answers.
func fetch[T any](ctx context.Context, c *Client, op operation, ask func(context.Context, *api.Client) (T, *api.Response, error)) (T, error) {
	var answer T
	err := c.do(ctx, op, func(ctx context.Context, a *api.Client) (response *api.Response, err error) {
		answer, response, err = ask(ctx, a)
		return response, err
	})
	return answer, err
}

// maxPerPage is the most that GitHub puts on a page.
const maxPerPage = 100

// asker asks for a page of a listing.
type asker[T any] func(context.Context, *api.Client, api.ListOptions) (*T, *api.Response, error)

// listPage reads one page and tells the number of the next; 0: it was the last.
func listPage[T any](ctx context.Context, c *Client, op operation, page api.ListOptions, ask asker[T]) (list *T, next int, err error) {
	list, err = fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*T, *api.Response, error) {
		list, response, err := ask(ctx, a, page)
		if next = 0; response != nil && response.NextPage > page.Page {
			next = response.NextPage // a page that leads back would be read for ever
		}
		return list, response, err
	})
	if err == nil && list == nil {
		err = unavailable(op, 0, errors.New("the answer is empty"))
	}
	return list, next, err
}

// listPages reads a listing, of most pages at the most, until take has enough.
func listPages[T any](ctx context.Context, c *Client, op operation, most int, ask asker[T], take func(*T) (enough bool)) error {
	for page := 1; page != 0 && most > 0; most-- {
		list, next, err := listPage(ctx, c, op, api.ListOptions{Page: page, PerPage: maxPerPage}, ask)
		if err != nil || take(list) {
			return err
		}
		page = next
	}
	return nil
}

package github

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TokenSource gives the token of a call: a personal access token, or that of a GitHub App's installation. It
// is asked for each call, so that tokens may change while the daemon runs.
type TokenSource func(ctx context.Context) (lifecycle.Secret, error)

// StaticToken always gives the same token.
func StaticToken(token lifecycle.Secret) TokenSource {
	return func(context.Context) (lifecycle.Secret, error) {
		if !isToken(token.Reveal()) {
			return "", errors.New("the GitHub token is empty or not one word; give the token and nothing else")
		}
		return token, nil
	}
}

// TokenFile reads the token from a file, each time: it may be replaced.
func TokenFile(path string) TokenSource {
	return func(context.Context) (lifecycle.Secret, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read GitHub token: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if !isToken(token) {
			return "", fmt.Errorf("read GitHub token: %s is empty or holds more than one word; write the token and nothing else", path)
		}
		return lifecycle.Secret(token), nil
	}
}

// isToken reports whether s can be one: a header takes one printable word.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// credential is an identity that can call: a token's owner, an App, or one of its
// installations. Each has limits of its own.
type credential struct {
	name   string // for people
	api    *api.Client
	budget budget
	pacer  *pacer
	// renew drops a token that GitHub refuses, so that the next call brings another; nil: there is no other.
	renew func()
}

// newCredential makes one whose calls to the API's host go through signed.
func (c *Client) newCredential(name string, signed http.RoundTripper) *credential {
	made := &credential{name: name, pacer: newPacer(c.replicas)}
	made.api = api.NewClient(&http.Client{Transport: &authorized{c.base, signed, c.transport, &made.budget}})
	made.api.BaseURL = c.base
	made.api.UserAgent = "remuda"
	return made
}

// enter waits until a call may be made, or says why it may not. After nil comes leave.
func (c *credential) enter(ctx context.Context, op operation, b *breaker) error {
	// What will not go out must not take a turn from what can.
	if rest := c.budget.admit(op.lane, op.kind, time.Now()); rest != nil {
		return rest
	}
	if err := c.pacer.enter(ctx, op.pace); err != nil {
		return err
	}
	// Much may have changed while it waited for its turn.
	rest := c.budget.admit(op.lane, op.kind, time.Now())
	if rest == nil {
		rest = b.admit(time.Now())
	}
	if rest != nil {
		c.pacer.leave(op.pace)
		return rest
	}
	c.budget.begin()
	return nil
}

func (c *credential) leave(op operation) {
	c.budget.end()
	c.pacer.leave(op.pace)
}

// credentialsError is a call that was not made, for want of a token.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// bearer adds a token to each call.
type bearer struct {
	token TokenSource
	next  http.RoundTripper
}

// RoundTrip changes the request's header: it is the caller's own clone.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.token(r.Context())
	if err != nil {
		return nil, &credentialsError{err}
	}
	r.Header.Set("Authorization", "Bearer "+token.Reveal())
	return b.next.RoundTrip(r)
}

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

// maxBody bounds an answer: a page of 100 runners is below 200 KiB, a webhook of ours below 100 KiB.
const maxBody = 8 << 20

// NewTransport returns a transport that trusts, beside the system's
// authorities, those of a PEM text; with an empty text the system's alone.
func NewTransport(authorities []byte) (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = callsAtOnce // with the default of 2 nearly every call would dial
	if len(authorities) == 0 {
		return transport, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without authorities
	}
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, errors.New("there is no certificate in it; write the authority's in PEM form, from -----BEGIN CERTIFICATE----- on")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// authorized carries the calls of one credential: signed ones to the API's own
// host, plain ones to others, so that after a redirect the token stays behind.
type authorized struct {
	base          *url.URL
	signed, plain http.RoundTripper
	budget        *budget
}

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // those below add headers
	if r.URL.Host != a.base.Host || r.URL.Scheme != a.base.Scheme {
		response, err := a.plain.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return bound(response), nil
	}
	response, err := a.signed.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	bound(response)
	now := time.Now()
	a.budget.observe(response.Header, kindOf(r.Context()), now)
	if wait := asksToWait(response.Header, now); wait > 0 && response.StatusCode >= http.StatusBadRequest {
		a.budget.rest(wait, now)
	}
	if limited := limitOf(response, now); limited != nil {
		_ = response.Body.Close()
		if limited.why == secondaryLimit {
			a.budget.rest(limited.wait, now)
		}
		return nil, limited
	}
	// The client library keeps a gate of its own by these headers. It believes
	// them whatever they say, and has one for all resources.
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		response.Header.Del(name)
	}
	return response, nil
}

func bound(response *http.Response) *http.Response {
	response.Body = bounded{io.LimitReader(response.Body, maxBody), response.Body}
	return response
}

// bounded reads at most so much and closes what it reads.
type bounded struct {
	io.Reader
	io.Closer
}

const (
	primaryLimit   = "GitHub's rate limit is used up"
	secondaryLimit = "GitHub's secondary rate limit was hit"
)

// limitOf tells whether an answer is that of a rate limit. The client library
// would too, but takes the reset of the primary limit, up to an hour ahead, for
// the end of a secondary one that does not say how long it lasts.
func limitOf(response *http.Response, now time.Time) *restError {
	status, header := response.StatusCode, response.Header
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return nil
	}
	wait := asksToWait(header, now)
	switch {
	case header.Get("X-RateLimit-Remaining") == "0":
		wait = cmp.Or(wait, untilReset(header, now))
		return &restError{primaryLimit, max(wait, time.Second), status}
	case wait > 0:
		return &restError{secondaryLimit, wait, status}
	case status == http.StatusTooManyRequests, saysSecondary(response):
		return &restError{secondaryLimit, limitedFor, status}
	}
	return nil
}

// saysSecondary looks into a refusal, whose body can still be read then.
func saysSecondary(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	response.Body = bounded{bytes.NewReader(body), response.Body}
	text := strings.ToLower(strings.ReplaceAll(string(body), "-", " ")) // links have hyphens
	return err == nil && (strings.Contains(text, "secondary rate limit") || strings.Contains(text, "#abuse rate limits"))
}

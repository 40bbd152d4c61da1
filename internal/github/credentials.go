package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// maxBody bounds an answer: a page of 100 runners is below 200 KiB.
const maxBody = 8 << 20

// TokenSource gives the token of a call: a personal access token, or that of a
// GitHub App's installation. It is asked anew for each call, so that tokens
// may change while the daemon runs.
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

// credentialsError is a call that was not made, for want of a token.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// authorized adds the token to calls of the API's own host. After a redirect
// to another one the token stays behind.
type authorized struct {
	token TokenSource
	base  *url.URL
	next  http.RoundTripper
}

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.URL.Host == a.base.Host && r.URL.Scheme == a.base.Scheme {
		token, err := a.token(r.Context())
		if err != nil {
			return nil, &credentialsError{err}
		}
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	response, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = bounded{io.LimitReader(response.Body, maxBody), response.Body}
	return response, nil
}

// bounded reads at most so much and closes what it reads.
type bounded struct {
	io.Reader
	io.Closer
}

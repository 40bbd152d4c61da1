package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
)

// Callers says who may call what. The zero value knows only callers in plaintext on
// this machine, which may do everything.
type Callers struct {
	// Operators are roles by the subject of a client certificate, in the text
	// of RFC 2253. Certificates of no role are refused.
	Operators map[string]policy.Role
	// Tokens checks the ID tokens of workflows; nil: none is taken.
	Tokens Tokens
	// Rules are what workflows may ask for.
	Rules policy.Rules
	// Once remembers an id of a kind until a time, in one conditional write:
	// lifecycle.ErrExists if it is remembered already. Required with Tokens.
	Once func(ctx context.Context, kind, id string, until time.Time) error
	// Fork says whether the commit of a run is of a fork. It is asked for pull
	// requests of repositories whose rule refuses those. Nil: it is never known.
	Fork func(ctx context.Context, repository, runID string) (policy.Fork, error)
	// Workers are the tokens of the workers of services; none: there are none.
	Workers WorkerTokens
}

// Tokens checks ID tokens.
type Tokens interface {
	// Verify tells what a token says that is good: *TokenError if it is not, lifecycle.ErrUnavailable if that
	// cannot be known now. Whether it was used before is not its business.
	Verify(ctx context.Context, raw string) (Token, error)
}

// Token is what an ID token of GitHub Actions says.
type Token struct {
	// ID is its jti, of at most 256 printable characters.
	ID string
	// Until is when it is good no longer, leeway included.
	Until time.Time
	// Origin is the run that it was given to; Fork is not known.
	Origin     policy.Origin
	RunAttempt int
}

// TokenError is an ID token that is not good. It holds nothing secret.
type TokenError struct {
	// Why is a half sentence that begins with a verb: "expired at …".
	Why string
}

func (e *TokenError) Error() string { return "the ID token " + e.Why }

func (c Callers) validate() error {
	if c.Tokens != nil && c.Once == nil {
		return errors.New("callers: tokens without something that remembers them")
	}
	return nil
}

// caller is who makes a call.
type caller struct {
	// name is for the log.
	name string
	// role is an operator's; empty for a workflow.
	role policy.Role
	// token is a workflow's; nil for an operator.
	token *Token
	// services are those that a worker works for; nil for others.
	services []string
}

func workflow(t Token) caller {
	return caller{name: fmt.Sprintf("run %s of %s, attempt %d", t.Origin.RunID, t.Origin.Repository, t.RunAttempt), token: &t}
}

// callerKey is where a context has its *caller: the edge puts an empty one
// there, and fills it in once it knows.
type callerKey struct{}

func withCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{})
}

// callerOf is who makes the call; one without role and token if that is not known.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

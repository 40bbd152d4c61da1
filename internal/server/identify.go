package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/secretfile"
)

const (
	// tokenKind is the kind under which the ids of tokens are remembered.
	tokenKind = "id-token"
	// rememberLonger than a token is good: replicas' clocks differ.
	rememberLonger = 2 * time.Minute
	// identifyTimeout bounds the calls to identity providers. A caller learns soon that
	// one is unavailable, since it cannot be admitted without it.
	identifyTimeout = 10 * time.Second
)

// identify tells who makes a call. What a caller shows is held against it: one with a token is a workflow, or
// a worker where the method is of workers, whatever certificate or machine it comes from.
func (e *interceptors) identify(ctx context.Context, method string) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, status.Error(codes.Unauthenticated, "nothing is known of the caller")
	}
	tls, secure := p.AuthInfo.(credentials.TLSInfo)
	local := !secure && loopback(p.LocalAddr) && loopback(p.Addr)
	header := metadata.ValueFromIncomingContext(ctx, "authorization")
	switch {
	case len(header) > 0 && !secure && !local:
		return caller{}, status.Error(codes.Unauthenticated, "a token is taken over TLS only")
	case len(header) > 0 && ofWorkers(method):
		token, ok := bearer(header)
		if !ok {
			return caller{}, errBearer
		}
		return e.worker(token)
	case len(header) > 0:
		return e.workflow(ctx, header)
	case secure && len(tls.State.VerifiedChains) > 0:
		return e.operator(tls.State.VerifiedChains[0][0])
	case local:
		return caller{name: "loopback", role: policy.RoleAdmin}, nil
	}
	return caller{}, status.Error(codes.Unauthenticated, "a client certificate or an ID token of GitHub Actions is required")
}

var errBearer = status.Error(codes.Unauthenticated, "the authorization is not one bearer token: write \"authorization: Bearer TOKEN\"")

func (e *interceptors) operator(cert *x509.Certificate) (caller, error) {
	if time.Now().After(cert.NotAfter) { // the connection was made before
		return caller{}, certificateExpired(cert)
	}
	name, err := subject(cert)
	if err != nil {
		return caller{}, status.Error(codes.Unauthenticated, "the subject of the client certificate cannot be read")
	}
	c := caller{name: name, role: e.callers.Operators[name]}
	if c.role == "" {
		return c, status.Errorf(codes.PermissionDenied, "the certificate's subject, %s, has no role: add it to callers.operators", name)
	}
	return c, nil
}

func certificateExpired(cert *x509.Certificate) error {
	return status.Errorf(codes.Unauthenticated, "the client certificate expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
}

// whileCertified is the context of a call that ends with the client certificate, whose expiry is then its cause. A call
// without a certificate has none to outlive.
func whileCertified(ctx context.Context) (context.Context, context.CancelFunc) {
	if p, ok := peer.FromContext(ctx); ok {
		if tls, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(tls.State.VerifiedChains) > 0 {
			cert := tls.State.VerifiedChains[0][0]
			return context.WithDeadlineCause(ctx, cert.NotAfter, certificateExpired(cert))
		}
	}
	return context.WithCancel(ctx)
}

// subject is the text of RFC 2253 of a certificate's subject: all of it, as it
// stands there, so that no two subjects have the same text.
func subject(cert *x509.Certificate) (string, error) {
	var names pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &names); err != nil || len(rest) > 0 {
		return "", errors.Join(errors.New("read subject"), err)
	}
	return names.String(), nil
}

// workflow takes an ID token, once.
func (e *interceptors) workflow(ctx context.Context, header []string) (caller, error) {
	if e.callers.Tokens == nil {
		return caller{}, status.Error(codes.Unauthenticated, "ID tokens are not taken here: callers.repositories is not configured")
	}
	raw, ok := bearer(header)
	if !ok {
		return caller{}, errBearer
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	token, err := e.callers.Tokens.Verify(ctx, raw)
	var bad *TokenError
	switch {
	case errors.As(err, &bad):
		return caller{}, status.Error(codes.Unauthenticated, bad.Error())
	case err != nil:
		return caller{}, unavailable(fmt.Errorf("check the ID token: %w", err))
	}
	c := workflow(token)
	// Any GitHub user can get a token for our audience: one without a rule is not worth a write.
	if _, found := e.callers.Rules.Find(token.Origin.RepositoryID, token.Origin.OwnerID); !found {
		_, verdict := e.callers.Rules.Admit(token.Origin, lifecycle.Spec{})
		return c, status.Error(codes.PermissionDenied, verdict.Reason)
	}
	return c, e.once(ctx, token)
}

func (e *interceptors) once(ctx context.Context, t Token) error {
	err := e.callers.Once(ctx, tokenKind, t.ID, t.Until.Add(rememberLonger))
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		return status.Error(codes.Unauthenticated, "the ID token was used before: each call, and each retry of one, needs a new one from ACTIONS_ID_TOKEN_REQUEST_URL")
	case err != nil:
		return unavailable(fmt.Errorf("remember the ID token: %w", err))
	}
	return nil
}

// bearer is the token in an authorization header that is there once.
func bearer(header []string) (string, bool) {
	if len(header) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(header[0], " ")
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

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
	Origin policy.Origin
	// Workflow is the name of the run's workflow; empty: the token does not say.
	Workflow   string
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

// workerToken is one in a file. It must not be guessable, so it has to be as long as a key.
var workerToken = secretfile.Kind{Noun: "token", Least: 32}

// TokenSource gives the tokens that are good. It is asked for each call, so that a token may be replaced
// while the daemon runs: the new one is added, the callers get it, and then the old one is removed.
type TokenSource func() ([]lifecycle.Secret, error)

// TokenFile reads tokens from a file, one in each line, each of at least 32 bytes.
func TokenFile(path string) TokenSource { return TokenSource(workerToken.File(path)) }

// WorkerTokens are where the tokens of the workers come from, by service.
type WorkerTokens map[string]TokenSource

// Services are the names of the services whose token this is. It takes as long whichever it is, and however
// much of it is right. A source that fails hides no other: the error names it.
func (t WorkerTokens) Services(token string) (found []string, err error) {
	is := sha256.Sum256([]byte(token))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		tokens, wrong := t[name]()
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("service %s: %w", name, wrong))
		}
		good := 0
		for _, one := range tokens {
			want := sha256.Sum256([]byte(one.Reveal()))
			good |= subtle.ConstantTimeCompare(is[:], want[:])
		}
		if good == 1 {
			found = append(found, name)
		}
	}
	return found, err
}

// worker tells which services' worker has a token.
func (e *interceptors) worker(token string) (caller, error) {
	services, err := e.callers.Workers.Services(token)
	if err != nil {
		e.log.Error("cannot read worker tokens", logkey.Error, err)
	}
	switch {
	case len(services) > 0:
		return caller{name: "a worker of " + strings.Join(services, ", "), services: services}, nil
	case err != nil:
		return caller{}, unavailable(errors.New("the worker tokens cannot be read now"))
	}
	return caller{}, status.Error(codes.Unauthenticated, "the token is not the worker token of a service")
}

// ownService keeps a worker to the services of its token.
func ownService(own []string, req any) error {
	if r, ok := req.(interface{ GetService() string }); ok && slices.Contains(own, r.GetService()) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "the token is that of a worker of %s: it is good for no other service", strings.Join(own, ", "))
}

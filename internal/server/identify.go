package server

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
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
		return caller{}, status.Errorf(codes.Unauthenticated, "the client certificate expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
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

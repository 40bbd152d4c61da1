// Package idtoken checks the ID tokens that GitHub Actions gives to workflows (docs.github.com, "OpenID
// Connect reference"), with the keys that their issuer publishes.
package idtoken

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/remuda-ci/remuda/internal/server"
)

const (
	// MaxToken is the longest token that is looked at, in bytes. GitHub's are below 2 KiB.
	MaxToken = 8 << 10
	// Leeway is how far the issuer's clock and ours may differ.
	Leeway = time.Minute
	// MaxLifetime is the longest that a token may be good. GitHub's are for
	// minutes; one that is good for longer would have to be remembered longer.
	MaxLifetime = time.Hour
)

// Options are the parts of a Verifier. Issuer and Audience are required.
type Options struct {
	// Issuer is the URL that tokens name as theirs, exactly, and below which
	// the issuer says where its keys are.
	Issuer string
	// Audience is the one that tokens must be for, exactly.
	Audience string
	// Client reaches the issuer; nil: with the authorities of this machine. It
	// is not asked to follow redirects.
	Client *http.Client
	// Now is the time; nil: time.Now.
	Now func() time.Time
}

// Verifier checks tokens. It asks the issuer for keys when it needs them first,
// so it can be made while the issuer is away.
type Verifier struct {
	issuer, audience string
	keys             *keys
	now              func() time.Time
}

// New builds a verifier.
func New(o Options) (*Verifier, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("new verifier of ID tokens: an issuer and an audience are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{issuer: o.Issuer, audience: o.Audience, now: o.Now, keys: newKeys(o.Issuer, o.Client, o.Now)}, nil
}

// Verify implements server.Tokens. What a token says is checked before its
// signature, so that a token that cannot be good costs no call to the issuer.
func (v *Verifier) Verify(ctx context.Context, raw string) (server.Token, error) {
	h, c, err := read(raw)
	if err == nil {
		err = v.check(c)
	}
	if err != nil {
		return server.Token{}, err
	}
	key, err := v.keys.find(ctx, h.KeyID)
	if err != nil {
		return server.Token{}, err
	}
	signed := oidc.NewVerifier(v.issuer, &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{key}}, &oidc.Config{
		ClientID: v.audience, SupportedSigningAlgs: []string{oidc.RS256},
		SkipExpiryCheck: true, // check has done it, with a leeway
	})
	// Its errors may quote the token, so they are not passed on.
	if _, err := signed.Verify(ctx, raw); err != nil {
		return server.Token{}, bad("has a signature that is not of %s", v.issuer)
	}
	return c.token()
}

// check holds the claims against issuer, audience and time.
func (v *Verifier) check(c claims) error {
	switch {
	case c.Issuer != v.issuer:
		return bad("is of the issuer %.200q, not %s", c.Issuer, v.issuer)
	case len(c.Audience) != 1 || c.Audience[0] != v.audience:
		return bad("is for the audience %.200q, not %s alone: ask for it with &audience=%s", []string(c.Audience), v.audience, v.audience)
	}
	return c.times(v.now())
}

// bad is a token that is not good.
func bad(format string, args ...any) error {
	return &server.TokenError{Why: fmt.Sprintf(format, args...)}
}

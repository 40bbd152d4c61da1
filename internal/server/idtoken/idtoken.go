// Package idtoken checks the ID tokens that GitHub Actions gives to workflows (docs.github.com, "OpenID
// Connect reference"), with the keys that their issuer publishes.
package idtoken

import (
	"cmp"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
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

// header is the first part of a token.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

// claims are what a token says that we go by. Its sub is not among them: its
// format is up to each repository, and has changed.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  audience `json:"aud"`
	Expiry    int64    `json:"exp"` // seconds since 1970, as are the next two
	NotBefore int64    `json:"nbf"` // may be absent
	IssuedAt  int64    `json:"iat"`
	ID        string   `json:"jti"`

	Repository   string `json:"repository"`
	RepositoryID string `json:"repository_id"`
	OwnerID      string `json:"repository_owner_id"`
	RunID        string `json:"run_id"`
	RunAttempt   string `json:"run_attempt"`
	Event        string `json:"event_name"`
	Ref          string `json:"ref"`
	Workflow     string `json:"job_workflow_ref"`
	WorkflowName string `json:"workflow"` // of the run, which may call another workflow
}

// audience is one or several.
type audience []string

// UnmarshalJSON reads either form.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// compact is three parts of base64url. The other form of a JWS, JSON, is none that GitHub sends.
var compact = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// read takes a token apart and checks its form; its signature is not checked.
func read(raw string) (header, claims, error) {
	var h header
	var c claims
	switch {
	case len(raw) > MaxToken:
		return h, c, bad("is longer than %d bytes", MaxToken)
	case strings.Count(raw, ".") == 2 && strings.HasSuffix(raw, "."):
		return h, c, bad("is not signed")
	case !compact.MatchString(raw):
		return h, c, bad("is no JSON Web Token")
	}
	parts := strings.Split(raw, ".")
	if !decode(parts[0], &h) || !decode(parts[1], &c) {
		return h, c, bad("is no JSON Web Token of GitHub Actions")
	}
	if h.Algorithm != "RS256" {
		return h, c, bad("is signed with %.20q, not RS256", h.Algorithm)
	}
	return h, c, nil
}

func decode(part string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(data, into) == nil
}

// latest bounds the times of a token, so that they can be reckoned with.
const latest = 1 << 40

// times checks when the token is good.
func (c claims) times(now time.Time) error {
	c.NotBefore = cmp.Or(c.NotBefore, c.IssuedAt)
	switch {
	case c.Expiry <= 0 || c.Expiry > latest:
		return bad("has no exp that is a time")
	case c.IssuedAt <= 0 || c.IssuedAt > latest:
		return bad("has no iat that is a time")
	case c.NotBefore < 0 || c.NotBefore > latest:
		return bad("has an nbf that is no time")
	}
	expiry, notBefore, issued := time.Unix(c.Expiry, 0).UTC(), time.Unix(c.NotBefore, 0).UTC(), time.Unix(c.IssuedAt, 0).UTC()
	switch {
	case now.After(expiry.Add(Leeway)):
		return bad("expired at %s", expiry.Format(time.RFC3339))
	case now.Add(Leeway).Before(notBefore):
		return bad("is not good before %s", notBefore.Format(time.RFC3339))
	case now.Add(Leeway).Before(issued):
		return bad("is of the future: it was issued at %s", issued.Format(time.RFC3339))
	case expiry.Sub(issued) > MaxLifetime || expiry.Sub(notBefore) > MaxLifetime:
		return bad("is good for longer than %s", MaxLifetime)
	}
	return nil
}

// The forms of GitHub's claims.
var (
	tokenID        = regexp.MustCompile(`^[!-~]{1,256}$`)
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100}$`)
	runID          = regexp.MustCompile(`^[0-9]{1,19}$`)
	word           = regexp.MustCompile(`^[a-z_]{1,64}$`)
)

// token is what the claims say; they must all be there.
func (c claims) token() (server.Token, error) {
	for _, one := range []struct {
		name, value string
		form        *regexp.Regexp
	}{
		{"jti", c.ID, tokenID}, {"repository", c.Repository, repositoryName}, {"run_id", c.RunID, runID}, {"event_name", c.Event, word},
	} {
		if !one.form.MatchString(one.value) {
			return server.Token{}, bad("has no %s as GitHub writes it", one.name)
		}
	}
	t := server.Token{
		ID: c.ID, Until: time.Unix(c.Expiry, 0).Add(Leeway),
		Workflow: meter.WorkflowName(c.WorkflowName),
		Origin:   policy.Origin{Repository: c.Repository, RunID: c.RunID, Event: c.Event, Ref: c.Ref, Workflow: c.Workflow},
	}
	var attempt int64
	for _, one := range []struct {
		name, value string
		most        int64
		into        *int64
	}{
		{"repository_id", c.RepositoryID, 1<<63 - 1, &t.Origin.RepositoryID},
		{"repository_owner_id", c.OwnerID, 1<<63 - 1, &t.Origin.OwnerID},
		{"run_attempt", c.RunAttempt, 1 << 20, &attempt},
	} {
		n, err := strconv.ParseInt(one.value, 10, 64)
		if err != nil || n < 1 || n > one.most {
			return server.Token{}, bad("has no %s that is a number", one.name)
		}
		*one.into = n
	}
	t.RunAttempt = int(attempt)
	return t, nil
}

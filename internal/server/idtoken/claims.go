package idtoken

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
)

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
		Origin: policy.Origin{Repository: c.Repository, RunID: c.RunID, Event: c.Event, Ref: c.Ref, Workflow: c.Workflow},
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

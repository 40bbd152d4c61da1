package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/oauth2"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/recent"
)

const (
	// leeway is how far the issuer's clock and ours may differ.
	leeway = time.Minute
	// freshFor is how long is relied on what the issuer says of itself, and on its keys. A key that was withdrawn is taken for so long; one that
	// is new is asked for when a token names it.
	freshFor = time.Hour
	// askEvery bounds how often an issuer is asked that does not answer.
	askEvery = 10 * time.Second
	// askWithin bounds one call.
	askWithin = 5 * time.Second
	// maxBody bounds what an issuer may answer, and maxToken an ID token: one with hundreds of groups is some 20 KiB.
	maxBody, maxToken = 1 << 20, 64 << 10
)

// algorithms are those with a private key, which the issuer alone has. HS256, with a secret that we have too, and none are not among them.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// issuer is one as it describes itself.
type issuer struct {
	url    string
	client *http.Client
	now    func() time.Time
	log    hclog.Logger
	known  recent.Answers[*provider]
	// asked is when it was asked last, and trouble why it did not answer. Only a fetch of known uses them: there is one at a time.
	asked   time.Time
	trouble error
}

// provider is what an issuer says of itself.
type provider struct {
	*oidc.Provider
	said struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Userinfo      string   `json:"userinfo_endpoint"`
		Keys          string   `json:"jwks_uri"`
		Scopes        []string `json:"scopes_supported"`
		AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	}
}

func newIssuer(url string, client *http.Client, now func() time.Time, log hclog.Logger) *issuer {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	own.Timeout = askWithin
	// A redirect could lead to plaintext, and there is no need for one.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Transport = bounded{own.Transport}
	return &issuer{url: url, client: &own, now: now, log: log}
}

// bounded cuts answers that are too long.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.next == nil {
		b.next = http.DefaultTransport
	}
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err
}

// discover gives what the issuer says of itself (openid.net/specs/openid-connect-discovery-1_0.html).
func (i *issuer) discover(ctx context.Context) (*provider, error) {
	return i.known.Get(ctx, recent.Question{Now: i.now(), Young: freshFor, Within: askWithin}, func(ctx context.Context) (*provider, error) {
		if i.trouble != nil && i.now().Sub(i.asked).Abs() < askEvery {
			return nil, i.trouble
		}
		p, err := i.ask(ctx)
		if i.asked, i.trouble = i.now(), err; err != nil {
			i.log.Warn("people cannot sign in to the page: the issuer does not answer as it should", logkey.Issuer, i.url, logkey.Error, short(err))
		}
		return p, err
	})
}

func (i *issuer) ask(ctx context.Context) (*provider, error) {
	discovered, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", i.url, err)
	}
	p := &provider{Provider: discovered}
	if err := discovered.Claims(&p.said); err != nil {
		return nil, fmt.Errorf("discover %s: %w", i.url, err)
	}
	for _, one := range []string{p.said.Authorization, p.said.Token, p.said.Keys} {
		if !private(one) {
			return nil, fmt.Errorf("discover %s: it names %.200q, which is not a URL with https", i.url, one)
		}
	}
	if p.said.Userinfo != "" && !private(p.said.Userinfo) {
		return nil, fmt.Errorf("discover %s: it names %.200q, which is not a URL with https", i.url, p.said.Userinfo)
	}
	return p, nil
}

// private reports whether a secret may be sent to a URL: by TLS, or on this machine.
func private(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Scheme == "https" || (u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()))
}

// config is that of the flow. Groups are asked for by a scope where the issuer has one; others put them into the token unasked.
func (s *SignIn) config(p *provider, secret string) *oauth2.Config {
	style := oauth2.AuthStyleInHeader // what issuers take that say nothing
	if s.ClientSecret == nil || (len(p.said.AuthMethods) > 0 && !slices.Contains(p.said.AuthMethods, "client_secret_basic")) {
		style = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if len(s.Allowed.Groups) > 0 && slices.Contains(p.said.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{
		ClientID: s.ClientID, ClientSecret: secret, RedirectURL: s.RedirectURL, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.said.Authorization, TokenURL: p.said.Token, AuthStyle: style},
	}
}

// exchange gives the person that a code of the issuer is for.
func (s *SignIn) exchange(ctx context.Context, code string, a attempt) (person, error) {
	p, err := s.discovered(ctx)
	if err != nil {
		return person{}, err
	}
	secret := ""
	if s.ClientSecret != nil {
		read, err := s.ClientSecret()
		if err != nil {
			return person{}, err
		}
		secret = read.Reveal()
	}
	ctx = oidc.ClientContext(ctx, s.issuer.client)
	tokens, err := s.config(p, secret).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return person{}, s.noExchange(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, claims, err := s.verify(ctx, p, raw, a.Nonce)
	if err != nil {
		s.Log.Debug("an ID token is refused", logkey.Error, short(err))
		return person{}, refused("The ID token of %s is refused. The log of controld says why, at the level debug.", s.Issuer)
	}
	who := s.Allowed.personOf(id.Subject, claims)
	if s.Allowed.admits(who) || p.said.Userinfo == "" {
		return who, nil
	}
	// Some issuers put the mail address and groups elsewhere than into the token.
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	more := map[string]any{}
	if err == nil {
		err = info.Claims(&more)
	}
	if err != nil || info.Subject != id.Subject {
		s.Log.Debug("the issuer says no more of a person", logkey.Caller, id.Subject, logkey.Error, short(err))
		return who, nil
	}
	maps.Copy(claims, more)
	return s.Allowed.personOf(id.Subject, claims), nil
}

// noExchange is why a code was exchanged for nothing. What the issuer answers beside its code of an error is not passed on.
func (s *SignIn) noExchange(err error) error {
	var answered *oauth2.RetrieveError
	if !errors.As(err, &answered) || !oauthError.MatchString(answered.ErrorCode) {
		s.Log.Warn("the issuer of the page exchanges no code", logkey.Issuer, s.Issuer)
		return &Refusal{Unavailable: true, Why: fmt.Sprintf("Sign-in is not available now: %s does not answer as it should. Try again in a minute.", s.Issuer)}
	}
	if answered.ErrorCode != "invalid_grant" { // which is of one person, and not of what is configured
		s.Log.Warn("the issuer of the page refuses the page", logkey.Issuer, s.Issuer, logkey.Code, answered.ErrorCode)
	}
	return refused("%s does not take its code back: %s. Begin again.", s.Issuer, answered.ErrorCode)
}

// verify checks an ID token (OpenID Connect Core, section 3.1.3.7), with a leeway.
func (s *SignIn) verify(ctx context.Context, p *provider, raw, nonce string) (*oidc.IDToken, map[string]any, error) {
	if len(raw) > maxToken {
		return nil, nil, fmt.Errorf("it is longer than %d bytes", maxToken)
	}
	now := s.Now()
	id, err := p.Verifier(&oidc.Config{
		ClientID: s.ClientID, SupportedSigningAlgs: algorithms, Now: func() time.Time { return now.Add(-leeway) },
	}).Verify(ctx, raw)
	if err != nil {
		return nil, nil, err
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, nil, fmt.Errorf("read claims: %w", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		err = errors.New("its nonce is not that of this sign-in")
	case len(id.Audience) != 1 && claims["azp"] != s.ClientID:
		err = errors.New("it is for several audiences, and was not made for this page")
	case id.IssuedAt.IsZero() || id.IssuedAt.After(now.Add(leeway)):
		err = errors.New("it was issued in the future, or at no time")
	case id.Subject == "" || len(id.Subject) > maxSubject:
		err = errors.New("it names no person")
	}
	return id, claims, err
}

// short is as much of an error as a log needs. Those of the libraries may quote what an issuer sent.
func short(err error) string { return fmt.Sprintf("%.300s", fmt.Sprint(err)) }

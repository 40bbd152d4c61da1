package page_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/page/signin"
)

// grouped is the memory of the provider, whose people are in a group. As the standard has it, the provider says more than a name at its userinfo endpoint
// only, and not in the token.
type grouped struct{ *storage.Storage }

func (g grouped) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	err := g.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin)
	info.AppendClaims("groups", []string{"dev", "ops"})
	return err
}

// provider is an OpenID Provider that others have written (github.com/zitadel/oidc), and a page that people sign in to there.
type provider struct {
	page, issuer string
	options      *signin.Options
	world        *world
}

const providerSecret = "known-to-both"

// newProvider knows the page as a client that has a secret and as a public one. Its person is test-user@zitadel.ch, who does not have to type a password.
func newProvider(t *testing.T, change func(*signin.Options), more ...func(*page.Options)) *provider {
	t.Helper()
	served, issuing := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	p := &provider{page: "http://" + served.Listener.Addr().String(), issuer: "http://" + issuing.Listener.Addr().String()}
	back := p.page + "/ui/oidc/callback"
	memory := grouped{storage.NewStorageWithClients(storage.NewUserStore(p.issuer), map[string]*storage.Client{
		"with-secret": storage.WebClient("with-secret", providerSecret, back), "public": storage.NativeClient("public", back),
	})}
	config := &op.Config{CodeMethodS256: true}
	_, _ = rand.Read(config.CryptoKey[:])
	provides, err := op.NewProvider(config, memory, op.StaticIssuer(p.issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", provides)
	mux.HandleFunc("/login/username", func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("authRequestID")
		if err := memory.CheckUsernamePassword("test-user@127.0.0.1", "verysecure", id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(provides)(op.ContextWithIssuer(r.Context(), p.issuer), id), http.StatusFound)
	})
	p.options = &signin.Options{
		Issuer: p.issuer, ClientID: "with-secret", ClientSecret: func() (lifecycle.Secret, error) { return providerSecret, nil },
		RedirectURL: back, Keys: tokens(firstKey), Allowed: signin.Allowed{Emails: []string{"test-user@zitadel.ch"}, GroupsClaim: "groups"},
	}
	change(p.options)
	p.world = newWorld(t, func(o *page.Options) {
		o.SignIn = p.options
		for _, change := range more {
			change(o)
		}
	})
	served.Config.Handler, issuing.Config.Handler = p.world.handler, mux
	for _, s := range []*httptest.Server{served, issuing} {
		s.Start()
		t.Cleanup(s.Close)
	}
	return p
}

// visit opens an address as a browser with these cookies, and follows to where it is sent unless that begins with stop.
func visit(t *testing.T, jar http.CookieJar, address, stop string) (at *url.URL, status int, body string) {
	t.Helper()
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if stop != "" && strings.HasPrefix(r.URL.String(), stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	got, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	at = got.Request.URL
	if to, err := got.Location(); err == nil {
		at = to
	}
	return at, got.StatusCode, string(text)
}

func newJar(t *testing.T) http.CookieJar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return jar
}

var beginLink = regexp.MustCompile(`href="(/ui/oidc/begin[^"]*)"`)

// TestSignInAtAProvider: a person comes to a page, signs in at the provider and gets to that page.
func TestSignInAtAProvider(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*signin.Options)
		status int
		says   string
	}{
		"by mail":               {func(*signin.Options) {}, http.StatusOK, "Signed in as test-user@zitadel.ch"},
		"by domain":             {func(o *signin.Options) { o.Allowed.Emails, o.Allowed.Domains = nil, []string{"zitadel.ch"} }, http.StatusOK, "Signed in as test-user@zitadel.ch"},
		"by group":              {func(o *signin.Options) { o.Allowed.Emails, o.Allowed.Groups = nil, []string{"ops"} }, http.StatusOK, "Signed in as test-user@zitadel.ch"},
		"as a public client":    {func(o *signin.Options) { o.ClientID, o.ClientSecret = "public", nil }, http.StatusOK, "Signed in as test-user@zitadel.ch"},
		"on no list":            {func(o *signin.Options) { o.Allowed.Emails = []string{"alice@acme.com"} }, http.StatusForbidden, "knows you as test-user@zitadel.ch"},
		"with another secret":   {func(o *signin.Options) { o.ClientSecret = func() (lifecycle.Secret, error) { return "wrong", nil } }, http.StatusForbidden, "invalid_client"},
		"with no secret":        {func(o *signin.Options) { o.ClientSecret = nil }, http.StatusForbidden, "invalid_client"},
		"at an unknown client":  {func(o *signin.Options) { o.ClientID = "unknown" }, http.StatusBadRequest, ""},
		"to where it is not so": {func(o *signin.Options) { o.RedirectURL = "http://127.0.0.1:1/ui/oidc/callback" }, http.StatusBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, jar := newProvider(t, tt.change), newJar(t)
			at, status, body := visit(t, jar, p.page+"/ui/cost?days=7", "")
			begin := beginLink.FindStringSubmatch(body)
			if at.Path != "/ui/login" || status != http.StatusOK || begin == nil {
				t.Fatalf("without a session: at %s, status %d: %s", at, status, body)
			}
			at, status, body = visit(t, jar, p.page+begin[1], "")
			if status != tt.status || !strings.Contains(body, tt.says) {
				t.Errorf("status %d, want %d and %q: %s", status, tt.status, tt.says, body)
			}
			if good := tt.status == http.StatusOK; (at.RequestURI() == "/ui/cost?days=7") != good {
				t.Errorf("the browser is at %s", at)
			}
		})
	}
}

// TestCodesAreGoodOnceAndForOneBrowser: the provider refuses a code that it has exchanged, and one whose verifier is of another sign-in.
func TestCodesAreGoodOnceAndForOneBrowser(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(*signin.Options) {})
	back := p.page + "/ui/oidc/callback"
	// attempt goes to the provider and stops before it comes back.
	attempt := func() (http.CookieJar, *url.URL) {
		jar := newJar(t)
		at, _, _ := visit(t, jar, p.page+"/ui/oidc/begin", back)
		if at.Query().Get("code") == "" {
			t.Fatalf("the provider sends a browser to %s", at)
		}
		return jar, at
	}
	mine, answer := attempt()
	victims, stolen := attempt()
	q := answer.Query()
	q.Set("code", stolen.Query().Get("code"))
	if _, status, body := visit(t, mine, back+"?"+q.Encode(), ""); status != http.StatusForbidden || !strings.Contains(body, "invalid_grant") {
		t.Errorf("the code of another sign-in: status %d: %s", status, body)
	}
	// The code is not used up by that, or it is: the standard lets a provider choose. Its own browser is signed in as its own person, or is refused.
	_, status, body := visit(t, victims, stolen.String(), "")
	own := status == http.StatusOK && strings.Contains(body, "Signed in as test-user@zitadel.ch")
	if refused := status == http.StatusForbidden && strings.Contains(body, "invalid_grant"); !own && !refused {
		t.Errorf("the browser whose code was stolen: status %d: %s", status, body)
	}

	jar, answer := attempt()
	page, err := url.Parse(p.page + page.Path)
	if err != nil {
		t.Fatal(err)
	}
	kept := jar.Cookies(page)
	if _, status, body := visit(t, jar, answer.String(), ""); status != http.StatusOK || !strings.Contains(body, "Signed in as") {
		t.Fatalf("the first time: status %d: %s", status, body)
	}
	again := newJar(t)
	again.SetCookies(page, kept)
	if _, status, body := visit(t, again, answer.String(), ""); status != http.StatusForbidden || !strings.Contains(body, "invalid_grant") {
		t.Errorf("a replay with the cookie of the attempt: status %d: %s", status, body)
	}
}

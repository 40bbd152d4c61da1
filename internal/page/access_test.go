package page_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/page"
)

const token, otherToken = "a-token-of-thirty-two-bytes-or-more", "another-token-of-thirty-two-bytes"

// call is a request as it comes to controld: from an address, to one of controld's.
type call struct {
	from, to string
	host     string
	header   http.Header
	method   string
	path     string
	form     url.Values
}

func (c call) request(t testing.TB) *http.Request {
	t.Helper()
	if c.method == "" {
		c.method = "GET"
	}
	r := httptest.NewRequest(c.method, "http://"+c.host+page.Path+c.path, strings.NewReader(c.form.Encode()))
	r.RemoteAddr = c.from
	for name, values := range c.header {
		r.Header[name] = values
	}
	if c.form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	to, err := net.ResolveTCPAddr("tcp", c.to)
	if err != nil {
		t.Fatal(err)
	}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(to)))
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// here is a call from this machine, and there one from another that came by TLS.
func here() call { return call{from: "127.0.0.1:4000", to: "127.0.0.1:7080", host: "localhost:7080"} }

func there(more ...string) call {
	return call{from: "10.0.0.9:4000", to: "10.0.0.1:7080", host: "ci.acme.example", header: header(append([]string{"X-Forwarded-Proto", "https"}, more...)...)}
}

func tokens(all ...string) func() ([]lifecycle.Secret, error) {
	return func() (secrets []lifecycle.Secret, err error) {
		for _, one := range all {
			secrets = append(secrets, lifecycle.Secret(one))
		}
		return secrets, nil
	}
}

func TestWhoSeesThePage(t *testing.T) {
	t.Parallel()
	with := func(c call, change func(*call)) call {
		change(&c)
		return c
	}
	for name, tt := range map[string]struct {
		call   call
		tokens func() ([]lifecycle.Secret, error)
		want   int
	}{
		"this machine":                            {here(), nil, http.StatusOK},
		"this machine, by IPv6":                   {call{from: "[::1]:4000", to: "[::1]:7080", host: "[::1]:7080"}, nil, http.StatusOK},
		"this machine, by an address":             {with(here(), func(c *call) { c.host = "127.0.0.1" }), nil, http.StatusOK},
		"a name that was moved here":              {with(here(), func(c *call) { c.host = "evil.example:7080" }), nil, http.StatusForbidden},
		"a proxy on this machine":                 {with(here(), func(c *call) { c.header = header("X-Forwarded-For", "10.0.0.9") }), nil, http.StatusForbidden},
		"another proxy on this machine":           {with(here(), func(c *call) { c.header = header("Forwarded", "for=10.0.0.9") }), nil, http.StatusForbidden},
		"this machine, to another address":        {with(here(), func(c *call) { c.to = "10.0.0.1:7080" }), nil, http.StatusForbidden},
		"a proxy that adds a line of its own":     {with(here(), func(c *call) { c.header = http.Header{"X-Forwarded-For": {"", "203.0.113.5"}} }), nil, http.StatusForbidden},
		"a proxy that says nothing of its caller": {with(here(), func(c *call) { c.header = header("X-Forwarded-Proto", "https") }), nil, http.StatusForbidden},
		"this machine, where there are tokens":    {here(), tokens(token), http.StatusSeeOther},
		"this machine, with a token":              {with(here(), func(c *call) { c.header = header("Authorization", "Bearer "+token) }), tokens(token), http.StatusOK},
		"another machine, to a loopback address":  {with(here(), func(c *call) { c.from = "10.0.0.9:4000" }), nil, http.StatusForbidden},
		"another machine":                         {there(), nil, http.StatusForbidden},
		"another machine, where there are tokens": {there(), tokens(token), http.StatusSeeOther},
		"a proxy here, where there are tokens":    {with(here(), func(c *call) { c.header = header("Via", "1.1 proxy") }), tokens(token), http.StatusSeeOther},
		"with a token":                            {there("Authorization", "Bearer "+token), tokens(otherToken, token), http.StatusOK},
		"with a token in plaintext":               {with(there("Authorization", "Bearer "+token), func(c *call) { c.header.Del("X-Forwarded-Proto") }), tokens(token), http.StatusSeeOther},
		"with another token":                      {there("Authorization", "Bearer "+otherToken), tokens(token), http.StatusSeeOther},
		"with a part of a token":                  {there("Authorization", "Bearer "+token[:10]), tokens(token), http.StatusSeeOther},
		"with an empty token":                     {there("Authorization", "Bearer "), tokens(token), http.StatusSeeOther},
		"with a token in another form":            {there("Authorization", "Basic "+token), tokens(token), http.StatusSeeOther},
		"with a token where there are none":       {there("Authorization", "Bearer "+token), nil, http.StatusSeeOther},
		"this machine, with a wrong token":        {with(here(), func(c *call) { c.header = header("Authorization", "Bearer "+otherToken) }), tokens(token), http.StatusSeeOther},
		"with a cookie of its own":                {there("Cookie", "remuda-session=9999999999.00ff"), tokens(token), http.StatusSeeOther},
		"with a damaged cookie":                   {there("Cookie", "remuda-session=x"), tokens(token), http.StatusSeeOther},
		"while the tokens cannot be read":         {there("Authorization", "Bearer "+token), func() ([]lifecycle.Secret, error) { return nil, errors.New("no such file") }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *page.Options) { o.Tokens = tt.tokens })
			if got := w.call(tt.call); got.Code != tt.want {
				t.Errorf("status %d, want %d: %s", got.Code, tt.want, got.Body)
			} else if secret := got.Body.String(); tt.want != http.StatusOK && strings.Contains(secret, "default") {
				t.Errorf("a caller who may not see the page sees pools: %s", secret)
			}
		})
	}
}

// signedIn is the cookie of a browser that has shown a token.
func signedIn(t *testing.T, w *world, sent string) (cookie string, code int) {
	t.Helper()
	c := there()
	c.method, c.path, c.form = "POST", "login", url.Values{"token": {sent}}
	got := w.call(c)
	for _, one := range got.Result().Cookies() {
		if !one.HttpOnly || !one.Secure || one.SameSite != http.SameSiteStrictMode || one.Path != page.Path || strings.Contains(one.Value, sent) {
			t.Errorf("the cookie is %+v", one)
		}
		cookie = one.Name + "=" + one.Value
	}
	return cookie, got.Code
}

func TestSessions(t *testing.T) {
	t.Parallel()
	now, known := time.Now(), tokens(token, otherToken)
	w := newWorld(t, func(o *page.Options) {
		o.Now, o.Tokens = func() time.Time { return now }, func() ([]lifecycle.Secret, error) { return known() }
	})
	want := func(what, cookie string, code int) {
		t.Helper()
		if got := w.call(there("Cookie", cookie)); got.Code != code {
			t.Errorf("%s: status %d, want %d", what, got.Code, code)
		}
	}
	if cookie, code := signedIn(t, w, "wrong"); cookie != "" || code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: status %d and the cookie %q", code, cookie)
	}
	cookie, code := signedIn(t, w, otherToken)
	if code != http.StatusSeeOther {
		t.Fatalf("with a token: status %d", code)
	}
	want("a session", cookie, http.StatusOK)
	want("a session that was made longer", strings.Replace(cookie, "=1", "=2", 1), http.StatusSeeOther)
	now = now.Add(12*time.Hour - time.Minute)
	want("a session near its end", cookie, http.StatusOK)
	known = tokens(token)
	want("a session whose token was taken back", cookie, http.StatusSeeOther)
	known = tokens(otherToken)
	now = now.Add(time.Minute)
	want("a session after its end", cookie, http.StatusSeeOther)

	out := there("Cookie", cookie)
	out.method, out.path = "POST", "logout"
	if got := w.call(out); len(got.Result().Cookies()) != 1 || got.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("after signing out the cookies are %v", got.Result().Cookies())
	}
}

func TestSignInRefused(t *testing.T) {
	t.Parallel()
	plain := there()
	plain.header.Del("X-Forwarded-Proto")
	plain.method, plain.path, plain.form = "POST", "login", url.Values{"token": {token}}
	if got := newWorld(t, func(o *page.Options) { o.Tokens = tokens(token) }).call(plain); got.Code != http.StatusForbidden || len(got.Result().Cookies()) > 0 || !strings.Contains(got.Body.String(), "requires HTTPS") {
		t.Errorf("in plaintext: status %d, %v: %s", got.Code, got.Result().Cookies(), got.Body)
	}
	large := there()
	large.method, large.path, large.form = "POST", "login", url.Values{"token": {strings.Repeat("x", 8<<10)}}
	if got := newWorld(t, func(o *page.Options) { o.Tokens = tokens(token) }).call(large); got.Code != http.StatusUnauthorized {
		t.Errorf("a large form: status %d", got.Code)
	}
	none := there()
	none.path = "login"
	if got := newWorld(t, func(*page.Options) {}).call(none); got.Code != http.StatusForbidden {
		t.Errorf("without tokens: status %d", got.Code)
	}
}

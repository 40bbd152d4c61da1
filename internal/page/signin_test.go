package page_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/page/signin"
	"github.com/remuda-ci/remuda/internal/server/issuertest"
)

const (
	clientID    = "remuda-page"
	callbackURL = "https://ci.acme.example" + config.OIDCPath
	firstKey    = "a-session-key-of-thirty-two-bytes"
	secondKey   = "another-session-key-of-32-bytes-x"
)

// people is a page with an issuer whose tokens a test makes, and a clock.
type people struct {
	*world
	issuer *issuertest.Issuer
	now    time.Time
	keys   func() ([]lifecycle.Secret, error)
	log    strings.Builder
	// answer is what the issuer gives for a code, instead of a token of alice's; status is its status.
	answer func(nonce string) string
	status int
	// exchanges are the forms that the issuer was asked with.
	exchanges []url.Values
	mu        sync.Mutex
}

// newPeople lets in alice@acme.com, people with addresses of acme.org, and the group ops.
func newPeople(t *testing.T, change func(*page.Options)) *people {
	t.Helper()
	p := &people{issuer: issuertest.New(t), now: time.Now(), keys: tokens(firstKey), status: http.StatusOK}
	p.issuer.Now = func() time.Time { return p.now }
	p.issuer.Say("authorization_endpoint", p.issuer.URL+"/authorize")
	p.issuer.Handle("token_endpoint", p.exchange)
	p.world = newWorld(t, func(o *page.Options) {
		o.Now = func() time.Time { return p.now }
		o.Log = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &p.log, Mutex: &p.mu})
		o.SignIn = &signin.Options{
			Issuer: p.issuer.URL, ClientID: clientID, RedirectURL: callbackURL, Keys: func() ([]lifecycle.Secret, error) { return p.keys() },
			Allowed: signin.Allowed{Emails: []string{"alice@acme.com"}, Domains: []string{"acme.org"}, Groups: []string{"ops"}, GroupsClaim: "groups"},
		}
		change(o)
	})
	return p
}

func asItIs(*page.Options) {}

// exchange answers as the token endpoint. The code is the nonce, which no good issuer would have it be.
func (p *people) exchange(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.exchanges = append(p.exchanges, r.PostForm)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	if p.status != http.StatusOK {
		_, _ = w.Write([]byte(p.answer(r.PostForm.Get("code"))))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "for-the-userinfo", "token_type": "Bearer", "id_token": p.answer(r.PostForm.Get("code"))})
}

// atInfo is the log at the level info.
func (p *people) atInfo() string {
	var lines []string
	for line := range strings.Lines(p.log.String()) {
		if !strings.Contains(line, "[DEBUG]") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// alice is what a token says of her, with changes.
func (p *people) alice(nonce string, changes issuertest.Claims) string {
	c := issuertest.Claims{"aud": clientID, "sub": "alice-of-acme", "email": "alice@acme.com", "email_verified": true, "nonce": nonce, "nbf": nil, "jti": nil}
	for key, value := range changes {
		c[key] = value
	}
	return p.issuer.Token(c)
}

// browser is one that keeps its cookies.
type browser struct {
	p       *people
	cookies map[string]string
}

func (p *people) browser() *browser { return &browser{p, map[string]string{}} }

// get opens a path below that of the page.
func (b *browser) get(path string) *httptest.ResponseRecorder { return b.send("GET", path) }

func (b *browser) send(method, path string) *httptest.ResponseRecorder {
	b.p.t.Helper()
	c := there()
	c.method, c.path = method, path
	for name, value := range b.cookies {
		c.header["Cookie"] = []string{strings.Join(append(c.header["Cookie"], name+"="+value), "; ")}
	}
	got := b.p.call(c)
	for _, one := range got.Result().Cookies() {
		if b.cookies[one.Name] = one.Value; one.MaxAge < 0 {
			delete(b.cookies, one.Name)
		}
		if strings.HasPrefix(one.Name, "remuda-oidc") && (!one.HttpOnly || !one.Secure || one.SameSite != http.SameSiteLaxMode || one.Path != page.Path) {
			b.p.t.Errorf("a cookie is %+v", one)
		}
	}
	return got
}

// begin goes to the issuer, and returns with what.
func (b *browser) begin(to string) url.Values {
	b.p.t.Helper()
	got := b.get("oidc/begin?to=" + url.QueryEscape(to))
	at, err := url.Parse(got.Header().Get("Location"))
	if err != nil || got.Code != http.StatusSeeOther || !strings.HasPrefix(at.String(), b.p.issuer.URL+"/authorize?") {
		b.p.t.Fatalf("begin: status %d, to %s: %s", got.Code, got.Header().Get("Location"), got.Body)
	}
	return at.Query()
}

// back comes from the issuer, with what it was asked and changes.
func (b *browser) back(asked url.Values, changes url.Values) *httptest.ResponseRecorder {
	b.p.t.Helper()
	q := url.Values{"state": {asked.Get("state")}, "code": {asked.Get("nonce")}}
	for key, values := range changes {
		q[key] = values
	}
	return b.get("oidc/callback?" + q.Encode())
}

// signIn goes to the issuer and comes back with a token, as alice unless the issuer says otherwise.
func (b *browser) signIn() *httptest.ResponseRecorder {
	b.p.t.Helper()
	if b.p.answer == nil {
		b.p.answer = func(nonce string) string { return b.p.alice(nonce, nil) }
	}
	return b.back(b.begin("/ui/hosts?state=idle"), nil)
}

// sees says whether the browser sees the page.
func (b *browser) sees(what string, want bool) {
	b.p.t.Helper()
	got := b.get("")
	if (got.Code == http.StatusOK) != want || strings.Contains(got.Body.String(), "default") != want {
		b.p.t.Errorf("%s: status %d, want to see the page: %v", what, got.Code, want)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	b := p.browser()
	if got := b.get("hosts?state=idle"); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/ui/login?to=%2Fui%2Fhosts%3Fstate%3Didle" {
		t.Errorf("without a session: status %d, to %s", got.Code, got.Header().Get("Location"))
	}
	if got := b.get("login?to=%2Fui%2Fhosts%3Fstate%3Didle").Body.String(); !strings.Contains(got, `href="/ui/oidc/begin?to=%2fui%2fhosts%3fstate%3didle"`) ||
		!strings.Contains(got, "Sign in at "+p.issuer.URL) || strings.Contains(got, `name="token"`) {
		t.Errorf("the page to sign in: %s", got)
	}
	asked := b.begin("/ui/hosts?state=idle")
	for key, want := range map[string]string{
		"client_id": clientID, "redirect_uri": callbackURL, "response_type": "code", "scope": "openid email profile", "code_challenge_method": "S256",
	} {
		if got := asked.Get(key); got != want {
			t.Errorf("the issuer is asked with %s=%s, want %s", key, got, want)
		}
	}
	p.answer = func(nonce string) string { return p.alice(nonce, nil) }
	if got := b.back(asked, nil); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/ui/hosts?state=idle" {
		t.Fatalf("back: status %d, to %s: %s", got.Code, got.Header().Get("Location"), got.Body)
	}
	if form := p.exchanges[0]; form.Get("client_id") != clientID || form.Get("code_verifier") == "" || form.Get("redirect_uri") != callbackURL || form.Has("client_secret") {
		t.Errorf("a public client exchanges its code with %v", form)
	}
	if got := b.get("").Body.String(); !strings.Contains(got, "Signed in as alice@acme.com") || !strings.Contains(got, "Sign out") {
		t.Errorf("the page does not say who is signed in: %s", got)
	}
	if got := b.get("host/i-unknown"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "Sign out") {
		t.Errorf("a page without an answer: status %d: %s", got.Code, got.Body)
	}
	if len(b.cookies) != 1 {
		t.Errorf("the cookies are %v", b.cookies)
	}
	b.send("POST", "logout")
	b.sees("after signing out", false)
	for _, secret := range []string{"alice", "acme.com", asked.Get("state"), asked.Get("nonce"), "eyJ"} {
		if log := p.atInfo(); !strings.Contains(log, "a person has signed in") || strings.Contains(log, secret) {
			t.Errorf("the log has %q: %s", secret, log)
		}
	}
}

// A person sees nothing whose token is not as it must be, or who is on no list.
func TestTokensRefused(t *testing.T) {
	t.Parallel()
	seconds := func(p *people, d time.Duration) int64 { return p.now.Add(d).Unix() }
	for name, tt := range map[string]struct {
		answer func(p *people, nonce string) string
		want   bool
	}{
		"as it should be":   {func(p *people, n string) string { return p.alice(n, nil) }, true},
		"another nonce":     {func(p *people, n string) string { return p.alice("another", nil) }, false},
		"no nonce":          {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"nonce": nil}) }, false},
		"another audience":  {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"aud": "another"}) }, false},
		"a second audience": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"aud": []string{clientID, "x"}}) }, false},
		"made for another": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"aud": []string{clientID, "x"}, "azp": "x"})
		}, false},
		"made for the page": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"aud": []string{clientID, "x"}, "azp": clientID})
		}, true},
		"another issuer": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"iss": "https://evil.example"}) }, false},
		"a key of another": {func(p *people, n string) string {
			return p.signedWith("another", n)
		}, false},
		"expired": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"exp": seconds(p, -2*time.Minute)})
		}, false},
		"expired by their clock": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"exp": seconds(p, -50*time.Second)})
		}, true},
		"of the future": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"iat": seconds(p, 2*time.Minute)})
		}, false},
		"of a clock ahead": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"iat": seconds(p, 50*time.Second)})
		}, true},
		"not good yet":      {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"nbf": seconds(p, time.Hour)}) }, false},
		"without a time":    {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"iat": nil}) }, false},
		"without an end":    {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"exp": nil}) }, false},
		"without a subject": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"sub": nil}) }, false},
		"a long subject": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"sub": strings.Repeat("x", 256)})
		}, false},
		"signed with HS256": {func(p *people, n string) string { return confused(p, n) }, false},
		"not signed": {func(p *people, n string) string {
			return p.issuer.Unsigned(issuertest.Claims{"alg": "none"}, p.issuer.Claims(issuertest.Claims{"aud": clientID, "nonce": n, "email": "alice@acme.com", "email_verified": true})) + "."
		}, false},
		"changed after it was signed": {func(p *people, n string) string {
			parts, other := strings.Split(p.alice(n, issuertest.Claims{"email": "eve@evil.example"}), "."), strings.Split(p.alice(n, nil), ".")
			return parts[0] + "." + other[1] + "." + parts[2]
		}, false},
		"none":     {func(*people, string) string { return "" }, false},
		"no token": {func(*people, string) string { return "a.b.c" }, false},
		"too long": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"groups": strings.Repeat("x", 64<<10)})
		}, false},

		"mail that is not verified":                               {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email_verified": false}) }, false},
		"a mail address that the issuer does not say is verified": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email_verified": nil}) }, false},
		"mail verified as a text":                                 {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email_verified": "true"}) }, false},
		"mail in capitals":                                        {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "Alice@ACME.com"}) }, true},
		"mail of a neighbor":                                      {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "bob@acme.com"}) }, false},
		"mail of the domain":                                      {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "bob@acme.org"}) }, true},
		"mail below the domain":                                   {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "bob@evil.acme.org"}) }, false},
		"mail that ends like it":                                  {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "bob@evilacme.org"}) }, false},
		"mail with two domains": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": "bob@acme.org@evil.example"})
		}, false},
		"mail quoted": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": `"x@evil.example"@acme.org`})
		}, false},
		"mail with the Kelvin sign": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": "bo\u212a@acme.org"}) }, false},
		"mail as a list": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": []string{"alice@acme.com"}})
		}, false},
		"a group": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": nil, "groups": []any{"dev", 7, "ops"}})
		}, true},
		"a group as a text": {func(p *people, n string) string { return p.alice(n, issuertest.Claims{"email": nil, "groups": "ops"}) }, true},
		"a group in capitals": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": nil, "groups": []string{"Ops"}})
		}, false},
		"groups as a map": {func(p *people, n string) string {
			return p.alice(n, issuertest.Claims{"email": nil, "groups": map[string]bool{"ops": true}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, asItIs)
			p.answer = func(nonce string) string { return tt.answer(p, nonce) }
			b := p.browser()
			got := b.signIn()
			if (got.Code == http.StatusSeeOther) != tt.want {
				t.Errorf("status %d, want a session: %v: %s\n%s", got.Code, tt.want, got.Body, &p.log)
			}
			if !tt.want && (len(b.cookies) != 0 || !strings.Contains(got.Body.String(), "Not signed in")) {
				t.Errorf("the cookies are %v, and the page says %s", b.cookies, got.Body)
			}
			b.sees("then", tt.want)
		})
	}
}

// signedWith is a good token except for its key: "first", the one that all issuers of a test begin with, or one that the issuer never had.
func (p *people) signedWith(key, nonce string) string {
	other := issuertest.New(p.t)
	if key != "first" {
		other.Rotate(key)
	}
	claims := issuertest.Claims{"aud": clientID, "sub": "alice-of-acme", "email": "alice@acme.com", "email_verified": true, "nonce": nonce}
	return other.Sign(issuertest.Claims{"alg": "RS256", "kid": "first"}, p.issuer.Claims(claims))
}

// confused is a good token except for its algorithm, HS256, whose secret is the public key.
func confused(p *people, nonce string) string {
	good := strings.Split(p.alice(nonce, nil), ".")
	bad := strings.Split(p.issuer.Confused(), ".")
	return bad[0] + "." + good[1] + "." + bad[2]
}

// What the browser brings back must be what this page has sent with it, once.
func TestAnswersRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		changes url.Values
		says    string
	}{
		"another state":         {url.Values{"state": {"forged"}}, "not to the sign-in"},
		"no state":              {url.Values{"state": nil}, "not to the sign-in"},
		"an empty state":        {url.Values{"state": {""}}, "not to the sign-in"},
		"a long state":          {url.Values{"state": {strings.Repeat("x", 8<<10)}}, "not to the sign-in"},
		"no code":               {url.Values{"code": nil}, "has no code"},
		"a long code":           {url.Values{"code": {strings.Repeat("x", 8<<10)}}, "has no code"},
		"two codes":             {url.Values{"code": {"a", "b"}}, "has no code"},
		"an error":              {url.Values{"error": {"access_denied"}}, "does not sign you in: access_denied."},
		"an error with a state": {url.Values{"error": {"access_denied"}, "state": {"forged"}}, "not to the sign-in"},
		"an error that is none": {url.Values{"error": {"<script>alert(1)</script>"}}, "does not sign you in."},
	} {
		p := newPeople(t, asItIs)
		b := p.browser()
		got := b.back(b.begin(""), tt.changes)
		if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), tt.says) || len(b.cookies) > 0 || len(p.exchanges) > 0 || strings.Contains(got.Body.String(), "<script>a") {
			t.Errorf("%s: status %d, cookies %v, %d exchanges: %s", name, got.Code, b.cookies, len(p.exchanges), got.Body)
		}
	}
	p := newPeople(t, asItIs)
	p.answer = func(nonce string) string { return p.alice(nonce, nil) }
	b, other := p.browser(), p.browser()
	asked := b.begin("")
	kept := b.cookies["remuda-oidc-attempt"]
	if got := other.back(asked, nil); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "did not begin to sign in here") {
		t.Errorf("in another browser: status %d: %s", got.Code, got.Body)
	}
	other.begin("")
	if got := other.back(asked, nil); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "not to the sign-in") {
		t.Errorf("in a browser that has begun another: status %d: %s", got.Code, got.Body)
	}
	if got := b.back(asked, nil); got.Code != http.StatusSeeOther {
		t.Fatalf("in its own browser: status %d: %s", got.Code, got.Body)
	}
	if got := b.back(asked, nil); got.Code != http.StatusForbidden {
		t.Errorf("again: status %d", got.Code)
	}
	b.cookies["remuda-oidc-attempt"] = kept
	p.now = p.now.Add(10 * time.Minute)
	if got := b.back(asked, nil); got.Code != http.StatusForbidden || len(p.exchanges) != 1 {
		t.Errorf("again with the cookie, after its time: status %d, %d exchanges", got.Code, len(p.exchanges))
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	b := p.browser()
	b.signIn()
	b.sees("at once", true)
	const name = "remuda-oidc-session"
	session := b.cookies[name]
	with := func(what, cookie string, want bool) {
		t.Helper()
		(&browser{p, map[string]string{name: cookie}}).sees(what, want)
	}
	with("a copy", session, true)
	with("cut short", session[:len(session)-1], false)
	with("cut at the begin", session[1:], false)
	with("with a letter changed", session[:20]+string('A'+(session[20]+1)%26)+session[21:], false)
	with("padded", session+"=", false)
	with("empty", "", false)
	with("huge", strings.Repeat("A", 12<<10), false)
	with("no text of ours", "%7B%7D", false)
	b.begin("")
	with("that of an attempt", b.cookies["remuda-oidc-attempt"], false)
	b.cookies["remuda-oidc-attempt"] = session
	if got := b.back(url.Values{}, url.Values{"state": {""}, "code": {"x"}}); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "did not begin") {
		t.Errorf("a session as an attempt: status %d: %s", got.Code, got.Body)
	}

	p.keys = tokens(secondKey, firstKey)
	with("after a key was added", session, true)
	p.keys = tokens(secondKey)
	with("after its key was removed", session, false)
	p.keys = func() ([]lifecycle.Secret, error) { return nil, errors.New("no such file") }
	if got := b.get(""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("while the keys cannot be read: status %d", got.Code)
	}
	if got := b.get("oidc/begin"); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "cannot be read now") {
		t.Errorf("begin while the keys cannot be read: status %d", got.Code)
	}
	p.keys = tokens(firstKey)

	// Another replica, and one whose configuration is another.
	p.restart()
	with("at another replica", session, true)
	o, before := *p.options.SignIn, p.options.SignIn
	o.ClientID = "another"
	p.options.SignIn = &o
	p.restart()
	with("of another client", session, false)
	o = *before
	o.Allowed.Emails = []string{"carol@acme.com"}
	p.options.SignIn = &o
	p.restart()
	with("of a person who was taken off the list", session, false)
	p.options.SignIn = before
	p.restart()

	p.now = p.now.Add(8*time.Hour - time.Minute)
	with("near its end", session, true)
	p.now = p.now.Add(time.Minute)
	with("after its end", session, false)
}

// The longest cookies are shorter than what browsers keep, with their names and attributes.
func TestCookiesFit(t *testing.T) {
	t.Parallel()
	var groups []string
	for i := range 100 {
		groups = append(groups, strings.Repeat(`"`, 250)+fmt.Sprint(i))
	}
	p := newPeople(t, func(o *page.Options) { o.SignIn.Allowed.Groups = groups })
	mail := strings.Repeat("&", 64) + "@" + strings.Repeat("x", 249) + ".org"
	p.answer = func(nonce string) string {
		return p.alice(nonce, issuertest.Claims{"sub": strings.Repeat("<", 255), "name": strings.Repeat("\U0001F40E", 100), "email": mail, "groups": groups[:10]})
	}
	b := p.browser()
	to := "/ui/runs?" + strings.Repeat("&\"", 500)
	asked := b.begin(to)
	attempt := b.cookies["remuda-oidc-attempt"]
	if got := b.back(asked, nil); got.Code != http.StatusSeeOther || got.Header().Get("Location") != strings.ReplaceAll(to, `"`, "%22") && got.Header().Get("Location") != to {
		t.Fatalf("status %d, to %.100s: %s", got.Code, got.Header().Get("Location"), got.Body)
	}
	for name, value := range map[string]string{"attempt": attempt, "session": b.cookies["remuda-oidc-session"]} {
		if len(value) == 0 || len(value) > 4096-100 {
			t.Errorf("the cookie of the %s has %d bytes", name, len(value))
		}
	}
	b.sees("with the longest cookie", true)
}

// A sign-in leads to where the person wanted to go, and nowhere else.
func TestWhereASignInLeads(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	p.answer = func(nonce string) string { return p.alice(nonce, nil) }
	for to, want := range map[string]string{
		"/ui/run/acme/shop/1000": "/ui/run/acme/shop/1000", "/ui/cost?by=run&days=7": "/ui/cost?by=run&days=7", "/ui/": page.Path, "": page.Path,
		"https://evil.example/ui/": page.Path, "//evil.example/ui/": page.Path, `/\evil.example`: page.Path, `/ui/\evil`: page.Path, "/ui": page.Path,
		"/ui/../evil": page.Path, "/ui/%2e%2e/evil": page.Path, "/ui/..%2f..%2fevil": page.Path, "evil": page.Path, "javascript:alert(1)": page.Path, "/metrics": page.Path,
		"/ui/login": page.Path, "/ui/login?to=/ui/": page.Path, "/ui/logout": page.Path, "/ui/oidc/begin": page.Path, "/ui/x/../oidc/callback": page.Path,
		"/ui/\r\nSet-Cookie: x": page.Path, "/ui/ä": page.Path, "/ui/" + strings.Repeat("x", 2<<10): page.Path, "/uievil": page.Path, "///evil.example/ui/": page.Path,
	} {
		p.now = p.now.Add(time.Minute) // so that it is not too many at once
		b := p.browser()
		if got := b.back(b.begin(to), nil); got.Header().Get("Location") != want {
			t.Errorf("%q leads to %q, want %q (status %d)", to, got.Header().Get("Location"), want, got.Code)
		}
	}
}

// While the issuer is away the page is there and says so, and it is asked again, but not at each call.
func TestTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	p.issuer.Away.Store(true)
	b := p.browser()
	for range 3 {
		got := b.get("login")
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "Sign-in is not available now: "+p.issuer.URL) || strings.Contains(got.Body.String(), "oidc/begin") {
			t.Errorf("the page to sign in: status %d: %s", got.Code, got.Body)
		}
	}
	p.issuer.Away.Store(false)
	if got := b.get("oidc/begin"); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "not available") {
		t.Errorf("begin, at once after a failure: status %d: %s", got.Code, got.Body)
	}
	p.now = p.now.Add(10 * time.Second)
	if got := b.signIn(); got.Code != http.StatusSeeOther {
		t.Errorf("once it is back: status %d: %s", got.Code, got.Body)
	}
	p.issuer.Away.Store(true)
	p.now = p.now.Add(2 * time.Hour)
	b.sees("a session, while it is away", true)
	if got := b.get("oidc/begin"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("begin, while it is away again: status %d: %s", got.Code, got.Body)
	}
	p.issuer.Away.Store(false)
	p.now = p.now.Add(10 * time.Second)
	p.answer, p.status = func(string) string { return "<html>alice@acme.com</html>" }, http.StatusBadGateway
	if got := b.signIn(); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "Try again") {
		t.Errorf("while it exchanges nothing: status %d: %s", got.Code, got.Body)
	}
	p.answer, p.status = func(string) string { return `{"error": "invalid_client", "error_description": "alice@acme.com"}` }, http.StatusBadRequest
	if got := b.signIn(); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "invalid_client") {
		t.Errorf("while it refuses the page: status %d: %s", got.Code, got.Body)
	}
	if log := p.atInfo(); strings.Contains(log, "alice") || !strings.Contains(log, "invalid_client") {
		t.Errorf("the log: %s", log)
	}
}

// An issuer whose description would send secrets in plaintext, or is of another, is not used.
func TestDescriptionsRefused(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]any{
		"token_endpoint": "http://issuer.example/token", "authorization_endpoint": "javascript:alert(1)", "jwks_uri": "http://issuer.example/keys",
		"userinfo_endpoint": "ftp://issuer.example", "issuer": "https://evil.example",
	} {
		p := newPeople(t, asItIs)
		p.issuer.Say(key, value)
		if got := p.browser().get("oidc/begin"); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %v: status %d", key, value, got.Code)
		}
	}
}

// What the token does not say the issuer is asked for, and what it says of another person does not count.
func TestUserinfo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		info map[string]any
		want bool
	}{
		"verified":            {map[string]any{"sub": "alice-of-acme", "email": "alice@acme.com", "email_verified": true}, true},
		"not verified":        {map[string]any{"sub": "alice-of-acme", "email": "alice@acme.com"}, false},
		"in a group":          {map[string]any{"sub": "alice-of-acme", "groups": []string{"ops"}}, true},
		"of another person":   {map[string]any{"sub": "bob-of-acme", "email": "alice@acme.com", "email_verified": true}, false},
		"of no person":        {map[string]any{"email": "alice@acme.com", "email_verified": true}, false},
		"with other names":    {map[string]any{"sub": "alice-of-acme", "iss": "https://evil.example", "aud": "x"}, false},
		"that is no document": {nil, false},
	} {
		p := newPeople(t, asItIs)
		p.issuer.Handle("userinfo_endpoint", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer for-the-userinfo" {
				t.Errorf("%s: the issuer is asked with %q", name, r.Header.Get("Authorization"))
			}
			_ = json.NewEncoder(w).Encode(tt.info)
		})
		p.answer = func(nonce string) string {
			return p.alice(nonce, issuertest.Claims{"email": nil, "email_verified": nil})
		}
		if got := p.browser().signIn(); (got.Code == http.StatusSeeOther) != tt.want {
			t.Errorf("%s: status %d: %s", name, got.Code, got.Body)
		}
	}
}

// Issuers differ in how they take the secret of a client, and in whether groups have a scope.
func TestWaysOfIssuers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		methods, scopes []string
		inForm          bool
		scope           string
	}{
		"that say nothing": {nil, nil, false, "openid email profile"},
		"basic":            {[]string{"client_secret_post", "client_secret_basic"}, []string{"openid", "groups"}, false, "openid email profile groups"},
		"post":             {[]string{"client_secret_post"}, []string{"openid"}, true, "openid email profile"},
	} {
		p := newPeople(t, func(o *page.Options) {
			o.SignIn.ClientSecret = func() (lifecycle.Secret, error) { return "known-to-both", nil }
		})
		p.issuer.Say("token_endpoint_auth_methods_supported", tt.methods)
		p.issuer.Say("scopes_supported", tt.scopes)
		p.answer = func(nonce string) string { return p.alice(nonce, nil) }
		b := p.browser()
		asked := b.begin("")
		got := b.back(asked, nil)
		if got.Code != http.StatusSeeOther || asked.Get("scope") != tt.scope || p.exchanges[0].Has("client_secret") != tt.inForm {
			t.Errorf("%s: status %d, scope %q, the form %v", name, got.Code, asked.Get("scope"), p.exchanges[0])
		}
	}
	p := newPeople(t, func(o *page.Options) {
		o.SignIn.ClientSecret = func() (lifecycle.Secret, error) { return "", errors.New("no such file") }
	})
	if got := p.browser().signIn(); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "cannot be read now") {
		t.Errorf("without its secret: status %d: %s", got.Code, got.Body)
	}
}

// A key that the issuer has changed is found, and one that it has withdrawn is not used for long.
func TestKeysOfTheIssuerRotate(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	want := func(what string, answer func(nonce string) string, code int) {
		t.Helper()
		p.answer = answer
		if got := p.browser().signIn(); got.Code != code {
			t.Errorf("%s: status %d, want %d: %s", what, got.Code, code, got.Body)
		}
	}
	old, current := func(nonce string) string { return p.signedWith("first", nonce) }, func(nonce string) string { return p.alice(nonce, nil) }
	want("with the first key", old, http.StatusSeeOther)
	p.issuer.Rotate("second")
	want("with a withdrawn key, soon", old, http.StatusSeeOther)
	p.now = p.now.Add(time.Hour)
	want("with a withdrawn key, an hour later", old, http.StatusForbidden)
	p.issuer.Rotate("third")
	want("with a new key, at once", current, http.StatusSeeOther)
}

// Without limits an unknown caller could have controld call the issuer without end.
func TestSignInsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	p.answer = func(string) string { return "no token" }
	codes := map[int]int{}
	for range 30 {
		codes[p.browser().signIn().Code]++
	}
	if codes[http.StatusForbidden] != 20 || codes[http.StatusServiceUnavailable] != 10 || len(p.exchanges) != 20 {
		t.Errorf("of 30 at once: %v, and %d calls", codes, len(p.exchanges))
	}
	p.now = p.now.Add(time.Second)
	if got := p.browser().signIn(); got.Code != http.StatusForbidden {
		t.Errorf("a second later: status %d", got.Code)
	}
}

// Who does not come by TLS does not sign in, nor does a browser on this machine see the page without: it may be a proxy's call.
func TestSignInIsNeverAnonymous(t *testing.T) {
	t.Parallel()
	p := newPeople(t, asItIs)
	plain := there()
	plain.header.Del("X-Forwarded-Proto")
	for _, path := range []string{"oidc/begin", "oidc/callback", "login"} {
		plain.path = path
		if got := p.call(plain); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "requires HTTPS") {
			t.Errorf("%s in plaintext: status %d: %s", path, got.Code, got.Body)
		}
	}
	if got := p.call(here()); got.Code != http.StatusSeeOther {
		t.Errorf("on this machine: status %d", got.Code)
	}
	b := p.browser()
	b.signIn()
	reads := there("Cookie", "remuda-oidc-session="+b.cookies["remuda-oidc-session"])
	for name, from := range map[string]call{"on this machine": here(), "with the cookie of a person": reads} {
		if code, a := p.post(from, "ListPools", "{}"); code != http.StatusUnauthorized {
			t.Errorf("a read %s: status %d, %+v", name, code, a)
		}
	}
	evil := there("Sec-Fetch-Site", "cross-site", "Cookie", "remuda-oidc-session="+b.cookies["remuda-oidc-session"])
	evil.method, evil.path = "POST", "logout"
	if got := p.call(evil); got.Code != http.StatusForbidden || len(got.Result().Cookies()) > 0 {
		t.Errorf("another site signs a person out: status %d, %v", got.Code, got.Result().Cookies())
	}
}

// Tokens go on beside the people.
func TestTokensBesidePeople(t *testing.T) {
	t.Parallel()
	p := newPeople(t, func(o *page.Options) { o.Tokens = tokens(token) })
	if got := p.browser().get("login").Body.String(); !strings.Contains(got, `name="token"`) || !strings.Contains(got, "Sign in at") {
		t.Errorf("the page to sign in: %s", got)
	}
	cookie, code := signedIn(t, p.world, token)
	if code != http.StatusSeeOther {
		t.Fatalf("with a token: status %d", code)
	}
	if got := p.call(there("Cookie", cookie)); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "Signed in with a token") {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
	if got := p.call(there("Authorization", "Bearer "+token)); got.Code != http.StatusOK || strings.Contains(got.Body.String(), "Sign out") {
		t.Errorf("a program with a token: status %d: %s", got.Code, got.Body)
	}
	b := p.browser()
	b.signIn()
	b.sees("a person", true)

	// After a refusal by the issuer a person may use a token, and begins again at the page that was asked for.
	refused := p.browser()
	got := refused.back(refused.begin("/ui/cost?days=7"), url.Values{"error": {"access_denied"}})
	if body := got.Body.String(); got.Code != http.StatusForbidden || !strings.Contains(body, `name="token"`) || !strings.Contains(body, `action="/ui/login?to=%2fui%2fcost%3fdays%3d7"`) ||
		!strings.Contains(body, `href="/ui/oidc/begin?to=%2fui%2fcost%3fdays%3d7"`) {
		t.Errorf("a person who is refused: status %d: %s", got.Code, body)
	}

	// Keys that cannot be read keep people out, and no browser with a token.
	p.keys = func() ([]lifecycle.Secret, error) { return nil, errors.New("no such file") }
	if got := b.get(""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a person while the keys cannot be read: status %d", got.Code)
	}
	name, value, _ := strings.Cut(cookie, "=")
	b.cookies[name] = value
	b.sees("a person with a session by token too, while the keys cannot be read", true)
}

// Names come from the issuer: they are text, and short.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claims issuertest.Claims
		want   string
	}{
		"a user name":    {issuertest.Claims{"preferred_username": "alice", "name": "Alice"}, "Signed in as alice<"},
		"a name":         {issuertest.Claims{"name": "Alice"}, "Signed in as Alice<"},
		"a subject":      {issuertest.Claims{}, "Signed in as alice-of-acme<"},
		"not verified":   {issuertest.Claims{"email": "root@acme.com", "email_verified": false}, "Signed in as alice-of-acme<"},
		"a script":       {issuertest.Claims{"name": "<script>"}, "Signed in as &lt;script&gt;<"},
		"marks and ends": {issuertest.Claims{"name": "\u202eali\nce\x00"}, "Signed in as alice<"},
		"a long one":     {issuertest.Claims{"name": strings.Repeat("ä", 300)}, "Signed in as " + strings.Repeat("ä", 60) + "<"},
	} {
		p := newPeople(t, asItIs)
		p.answer = func(nonce string) string {
			claims := issuertest.Claims{"email": nil, "groups": "ops"}
			for key, value := range tt.claims {
				claims[key] = value
			}
			return p.alice(nonce, claims)
		}
		b := p.browser()
		b.signIn()
		if got := b.get("").Body.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, cmp.Or(got, "nothing"))
		}
	}
}

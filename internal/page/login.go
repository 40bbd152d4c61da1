package page

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/page/signin"
)

// addSignIn adds where people sign in and out.
func (p *page) addSignIn(mux *http.ServeMux) error {
	mux.HandleFunc("GET "+Path+"login", p.login)
	mux.HandleFunc("POST "+Path+"login", p.login)
	mux.HandleFunc("POST "+Path+"logout", p.logout)
	if p.SignIn == nil {
		return nil
	}
	o := *p.SignIn
	o.Path, o.Log, o.Now = Path, p.Log, p.Now
	people, err := signin.New(o)
	if err != nil {
		return err
	}
	p.access.people = people
	mux.HandleFunc("GET "+Path+"oidc/begin", p.begin)
	mux.HandleFunc("GET "+Path+"oidc/callback", p.callback)
	return nil
}

// login shows the ways to sign in, and takes a token and gives a session for it.
func (p *page) login(w http.ResponseWriter, r *http.Request) {
	to := returnPath(r.URL.Query().Get("to"))
	err := p.access.signIn(w, r)
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	if errors.Is(err, errNoTokens) || errors.Is(err, errPlain) {
		p.answer(w, http.StatusForbidden, view{Title: "No sign-in here", Text: []string{err.Error()}})
		return
	}
	v := view{Title: "Sign in", Login: true, TokenForm: p.access.tokens != nil, To: to}
	if p.access.people != nil {
		if refusal := (*signin.Refusal)(nil); errors.As(p.access.people.Available(r.Context()), &refusal) {
			v.Text = append(v.Text, refusal.Why)
		} else {
			v.Issuer = p.SignIn.Issuer
		}
	}
	code := http.StatusOK
	switch {
	case errors.Is(err, errNotAsked):
	case errors.Is(err, errUnknown):
		v.Text, code = append(v.Text, "That is not a token of this page."), http.StatusUnauthorized
	default:
		p.Log.Error("a caller of the page cannot be checked", logkey.Error, err)
		v.Text, code = append(v.Text, unreadable), http.StatusServiceUnavailable
	}
	p.answer(w, code, v)
}

// begin sends a browser to the issuer.
func (p *page) begin(w http.ResponseWriter, r *http.Request) {
	if !private(r) {
		p.answer(w, http.StatusForbidden, view{Title: "No sign-in here", Text: []string{errPlain.Error()}})
		return
	}
	to := returnPath(r.URL.Query().Get("to"))
	if err := p.access.people.Begin(w, r, to); err != nil {
		p.notSignedIn(w, err, to)
	}
}

// callback is where the issuer sends a browser back.
func (p *page) callback(w http.ResponseWriter, r *http.Request) {
	if !private(r) {
		p.answer(w, http.StatusForbidden, view{Title: "No sign-in here", Text: []string{errPlain.Error()}})
		return
	}
	to, err := p.access.people.Finish(w, r)
	if err != nil {
		p.notSignedIn(w, err, returnPath(to))
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// notSignedIn says why.
func (p *page) notSignedIn(w http.ResponseWriter, err error, to string) {
	v := view{Title: "Not signed in", Login: true, TokenForm: p.access.tokens != nil, Issuer: p.SignIn.Issuer, To: to}
	var refusal *signin.Refusal
	if !errors.As(err, &refusal) {
		p.Log.Error("a person cannot sign in to the page", logkey.Error, err)
		v.Text = []string{unreadable}
		p.answer(w, http.StatusServiceUnavailable, v)
		return
	}
	v.Text = append(v.Text, refusal.Why)
	if refusal.More != "" {
		v.Text = append(v.Text, refusal.More)
	}
	code := http.StatusForbidden
	if refusal.Unavailable {
		code = http.StatusServiceUnavailable
	}
	p.answer(w, code, v)
}

// logout ends the session of a browser.
func (p *page) logout(w http.ResponseWriter, r *http.Request) {
	endSession(w)
	if p.access.people != nil {
		p.access.people.End(w)
	}
	http.Redirect(w, r, Path+"login", http.StatusSeeOther)
}

// maxReturn bounds the path that a person is sent back to, in bytes: it is kept in a cookie.
const maxReturn = 1 << 10

// returnPath is where to send a person who has signed in: a path of the page as it was asked for, or the first page. A link to the sign-in must not
// lead elsewhere, and not round in a circle.
func returnPath(to string) string {
	u, err := url.ParseRequestURI(to)
	if err != nil || len(to) > maxReturn || u.Scheme != "" || u.Host != "" || strings.ContainsFunc(to, strange) {
		return Path
	}
	clean := path.Clean(u.Path)
	for _, own := range []string{"login", "logout", "oidc"} {
		if clean == Path+own || strings.HasPrefix(clean, Path+own+"/") {
			return Path
		}
	}
	if !strings.HasPrefix(to, Path) || !strings.HasPrefix(clean+"/", Path) {
		return Path
	}
	return to
}

// strange is what has no place in a path as a browser sends it. Browsers take a backslash for a slash.
func strange(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }

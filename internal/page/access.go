package page

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/page/signin"
)

// access says who may see the page: a caller with a token, a browser that has shown one, and a person who has signed in. Without tokens and sign-in,
// callers on this machine see it.
type access struct {
	tokens func() ([]lifecycle.Secret, error)
	people *signin.SignIn // nil: people do not sign in
	now    func() time.Time
}

// The reasons why a caller does not see the page.
var (
	errUnknown  = errors.New("a token is required")
	errNoTokens = errors.New("without page.token_file or page.oidc in its configuration, controld shows the page only to callers on its own machine")
	errPlain    = errors.New("sign-in requires HTTPS: terminate TLS at a load balancer that sets X-Forwarded-Proto")
	errNotAsked = errors.New("no token was sent")
)

// viewer returns how a caller who may see the page is signed in; empty: without a session. It fails as check does.
func (a access) viewer(r *http.Request) (who string, err error) {
	var unknown error // whether a person is signed in
	if a.people != nil && r.Header.Get("Authorization") == "" {
		switch name, err := a.people.Person(r); {
		case err == nil:
			return "as " + name, nil
		case !errors.Is(err, signin.ErrNoSession):
			unknown = err
		}
	}
	if err := a.check(r); err != nil {
		return "", cmp.Or(unknown, err)
	}
	if _, err := r.Cookie(sessionCookie); err == nil && a.tokens != nil && r.Header.Get("Authorization") == "" {
		return "with a token", nil
	}
	return "", nil
}

// check returns nil for a caller who may read, with a token or on this machine: errUnknown, errNoTokens, or why that is not known now. It knows no
// people, who have sessions.
func (a access) check(r *http.Request) error {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "bearer") || !private(r) {
			return errUnknown
		}
		return a.verify(func(known lifecycle.Secret) bool { return same(token, known.Reveal()) })
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		if err := a.session(cookie.Value); err == nil || !errors.Is(err, errUnknown) {
			return err
		}
	}
	switch {
	case a.tokens != nil || a.people != nil: // also for a caller on this machine, which may be a proxy that does not say whose call it is
		return errUnknown
	case local(r):
		return nil
	}
	return errNoTokens
}

// verify returns nil if one of the tokens passes. It takes as long whichever it is.
func (a access) verify(passes func(lifecycle.Secret) bool) error {
	if a.tokens == nil {
		return errUnknown
	}
	all, err := a.tokens()
	if err != nil {
		return err
	}
	good := false
	for _, token := range all {
		good = passes(token) || good
	}
	if !good {
		return errUnknown
	}
	return nil
}

// same compares two secrets in a time that says nothing of them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// A session is its end and a code that is made of it with a token: any replica checks it, and it ends with its token.
const (
	sessionCookie = "remuda-session"
	sessionTime   = 12 * time.Hour
)

func sign(until string, with lifecycle.Secret) string {
	mac := hmac.New(sha256.New, []byte(with.Reveal()))
	mac.Write([]byte("session of remuda's page until " + until))
	return hex.EncodeToString(mac.Sum(nil))
}

func (a access) session(value string) error {
	until, code, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil || !a.now().Before(time.Unix(seconds, 0)) {
		return errUnknown
	}
	return a.verify(func(token lifecycle.Secret) bool { return same(code, sign(until, token)) })
}

// signIn begins a session for a browser that sends a token.
func (a access) signIn(w http.ResponseWriter, r *http.Request) error {
	switch {
	case a.tokens == nil && a.people == nil:
		return errNoTokens
	case !private(r):
		return errPlain
	case r.Method != http.MethodPost:
		return errNotAsked
	}
	sent := strings.TrimSpace(r.PostFormValue("token"))
	until := strconv.FormatInt(a.now().Add(sessionTime).Unix(), 10)
	var code string
	err := a.verify(func(token lifecycle.Secret) bool {
		good := same(sent, token.Reveal())
		if good {
			code = sign(until, token)
		}
		return good
	})
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: until + "." + code, Path: Path, MaxAge: int(sessionTime.Seconds()),
		HttpOnly: true, Secure: !local(r), SameSite: http.SameSiteStrictMode,
	})
	return nil
}

func endSession(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: Path, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// private reports whether a secret may be sent in the call: it came by TLS, to the load balancer that says so, or did not leave this machine.
func private(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") || local(r)
}

// forwards are what a proxy adds, whatever is in it: its caller may be anywhere. So are all that begin with X-Forwarded-.
var forwards = []string{"Forwarded", "X-Real-Ip", "Via"}

// local reports whether a caller is on this machine. The name that it calls has to be of this machine too: a browser could be led here by a
// site whose name was moved to a loopback address.
func local(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(forwards, name) {
			return false
		}
	}
	here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && loopback(here.String()) && loopback(r.RemoteAddr) && ownName(r.Host)
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && net.ParseIP(host).IsLoopback()
}

func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

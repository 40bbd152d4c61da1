package signin

import (
	"errors"
	"net/http"
	"time"
)

// The cookies. The first is there while a person is at the issuer.
const (
	attemptCookie = "remuda-oidc-attempt"
	sessionCookie = "remuda-oidc-session"
)

// ErrNoSession says that a browser is not signed in.
var ErrNoSession = errors.New("no person is signed in")

// session is a person who has signed in.
type session struct {
	Person person
	Until  int64 // seconds since 1970
}

// Person is the name of who is signed in: ErrNoSession, or why that is not known now. A person who is no longer allowed is not.
func (s *SignIn) Person(r *http.Request) (string, error) {
	var in session
	if err := s.read(r, sessionCookie, &in); err != nil {
		return "", err
	}
	if s.Now().Unix() >= in.Until || !s.Allowed.admits(in.Person) {
		return "", ErrNoSession
	}
	return in.Person.Name, nil
}

// End signs a browser out here. At the issuer its person stays signed in.
func (s *SignIn) End(w http.ResponseWriter) { s.drop(w, sessionCookie) }

func (s *SignIn) read(r *http.Request, name string, into any) error {
	cookie, err := r.Cookie(name)
	if err != nil {
		return ErrNoSession
	}
	if err := s.seals.open(name, cookie.Value, into); errors.Is(err, errNotSealed) {
		return ErrNoSession
	} else {
		return err
	}
}

// keep gives a browser a cookie. It is Lax and not Strict, since the issuer's site sends the browser here.
func (s *SignIn) keep(w http.ResponseWriter, name string, v any, length time.Duration) error {
	sealed, err := s.seals.seal(name, v)
	if err != nil {
		return err
	}
	http.SetCookie(w, s.cookie(name, sealed, int(length.Seconds())))
	return nil
}

func (s *SignIn) drop(w http.ResponseWriter, name string) { http.SetCookie(w, s.cookie(name, "", -1)) }

func (s *SignIn) cookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: s.Path, MaxAge: maxAge, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode}
}

// Package signin signs people in by OpenID Connect: the authorization code flow with PKCE, a state and a nonce
// (openid.net/specs/openid-connect-core-1_0.html, RFC 7636, RFC 9700).
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Options are the parts of a SignIn. All but ClientSecret, Client, Log and Now are required.
type Options struct {
	// Issuer is the URL that ID tokens name as theirs, exactly, and below which the issuer describes itself.
	Issuer string
	// ClientID is what the issuer knows this page by.
	ClientID string
	// ClientSecret is asked for each time that a code is exchanged; nil: the client is a public one.
	ClientSecret func() (lifecycle.Secret, error)
	// RedirectURL is where the issuer sends browsers back. Its host is that of the page.
	RedirectURL string
	// Allowed are the people who may sign in.
	Allowed Allowed
	// Keys seal the cookies: the first one seals, and each opens.
	Keys func() ([]lifecycle.Secret, error)
	// Path is where browsers send the cookies.
	Path string
	// Client reaches the issuer; nil: with the authorities of this machine. It is not asked to follow redirects.
	Client *http.Client
	Log    hclog.Logger
	Now    func() time.Time
}

// The bounds of a sign-in.
const (
	// attemptTime is how long a person may take at the issuer: to find a password, or a second factor.
	attemptTime = 10 * time.Minute
	// sessionTime is a working day. A person who is removed at the issuer keeps the page for so long at most, since the
	// issuer is not asked again.
	sessionTime = 8 * time.Hour
	// exchangeWithin bounds the calls to the issuer for one sign-in.
	exchangeWithin = 10 * time.Second
	// exchangesPerSecond and exchangesAtOnce bound what unknown callers can have this replica ask of the issuer. A sign-in is one exchange.
	exchangesPerSecond, exchangesAtOnce = 5, 20
	// maxState and maxCode are far longer than what is sent, in bytes.
	maxState, maxCode = 128, 4 << 10
)

// SignIn signs people in. It asks the issuer when a person signs in, so it can be made while the issuer is away. It keeps nothing of a person.
type SignIn struct {
	Options
	issuer    *issuer
	seals     seals
	secure    bool
	exchanges *rate.Limiter
}

// Refusal is why a person is not signed in.
type Refusal struct {
	// Why are sentences for that person, and for the log: they name no person.
	Why string
	// More are sentences for that person alone.
	More string
	// Unavailable says that it is the issuer's fault or ours, and may be over soon.
	Unavailable bool
}

// Error says why.
func (r *Refusal) Error() string { return r.Why }

func refused(format string, args ...any) error { return &Refusal{Why: fmt.Sprintf(format, args...)} }

// New checks the options and returns a SignIn.
func New(o Options) (*SignIn, error) {
	redirect, err := url.Parse(o.RedirectURL)
	switch {
	case err != nil || redirect.Host == "":
		return nil, errors.New("new sign-in: the redirect URL is no URL")
	case o.Issuer == "" || o.ClientID == "" || o.Keys == nil || o.Path == "":
		return nil, errors.New("new sign-in: an issuer, a client id, keys and a path are required")
	case o.Allowed.empty():
		return nil, errors.New("new sign-in: the lists of people are empty: mail addresses, domains or groups are required")
	}
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	if o.Now == nil {
		o.Now = time.Now
	}
	return &SignIn{
		Options: o, issuer: newIssuer(o.Issuer, o.Client, o.Now, o.Log), secure: redirect.Scheme == "https",
		seals: seals{keys: o.Keys, of: o.Issuer + "\n" + o.ClientID}, exchanges: rate.NewLimiter(exchangesPerSecond, exchangesAtOnce),
	}, nil
}

// attempt is what a browser keeps of a sign-in while its person is at the issuer.
type attempt struct {
	State, Nonce, Verifier string
	// To is the page that the person wanted to see.
	To    string
	Until int64 // seconds since 1970
}

// Available returns why people cannot sign in now; nil if the issuer has answered as it should.
func (s *SignIn) Available(ctx context.Context) error {
	_, err := s.discovered(ctx)
	return err
}

func (s *SignIn) discovered(ctx context.Context) (*provider, error) {
	p, err := s.issuer.discover(ctx)
	if err != nil {
		return nil, &Refusal{Unavailable: true, Why: fmt.Sprintf("Sign-in is not available now: %s does not answer as it should. Try again in a minute.", s.Issuer)}
	}
	return p, nil
}

// Begin sends a browser to the issuer. Then it is sent to the path to, which must be one of the page.
func (s *SignIn) Begin(w http.ResponseWriter, r *http.Request, to string) error {
	p, err := s.discovered(r.Context())
	if err != nil {
		return err
	}
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: to, Until: s.Now().Add(attemptTime).Unix()}
	if err := s.keep(w, attemptCookie, a, attemptTime); err != nil {
		return err
	}
	config := s.config(p, "")
	http.Redirect(w, r, config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusSeeOther)
	return nil
}

// Finish takes a browser that the issuer has sent back, and returns where it wanted to go, also with an error if that is known. An attempt is good for
// one try: its cookie is removed, and the issuer takes its code once.
func (s *SignIn) Finish(w http.ResponseWriter, r *http.Request) (to string, err error) {
	a, err := s.attempt(r)
	s.drop(w, attemptCookie)
	if err != nil {
		return "", err
	}
	code, err := codeOf(r.URL.Query(), a.State)
	if err != nil {
		return a.To, err
	}
	if !s.exchanges.AllowN(s.Now(), 1) {
		return a.To, &Refusal{Unavailable: true, Why: "Too many people sign in at once. Try again in a minute."}
	}
	who, err := s.person(r.Context(), code, a)
	if err != nil {
		return a.To, err
	}
	return a.To, s.keep(w, sessionCookie, session{Person: who, Until: s.Now().Add(sessionTime).Unix()}, sessionTime)
}

// person is the one that a code of the issuer is for, if the page lets that person in. The log has who only at the level debug. What was refused
// before the issuer was asked is not in it, since unknown callers can send that without end.
func (s *SignIn) person(ctx context.Context, code string, a attempt) (person, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	who, err := s.exchange(ctx, code, a)
	if err == nil && !s.Allowed.admits(who) {
		err = &Refusal{
			Why:  "page.oidc of controld does not let that person in: it lists neither a verified mail address of the person, nor its domain, nor a group.",
			More: fmt.Sprintf("%s knows you as %s.", s.Issuer, who.Name),
		}
	}
	if err != nil {
		s.Log.Info("a person is not signed in to the page", logkey.Reason, err)
		s.Log.Debug("a person is not signed in to the page", logkey.Caller, who.Subject)
		return person{}, err
	}
	s.Log.Info("a person has signed in to the page")
	s.Log.Debug("a person has signed in to the page", logkey.Caller, who.Subject)
	return who, nil
}

// attempt reads the cookie of one. Its seal says that this page has begun it.
func (s *SignIn) attempt(r *http.Request) (a attempt, err error) {
	err = s.read(r, attemptCookie, &a)
	if errors.Is(err, ErrNoSession) || (err == nil && s.Now().Unix() >= a.Until) {
		return a, refused("This browser did not begin to sign in here, or more than %d minutes ago. Begin again, at the address %s.",
			int(attemptTime.Minutes()), strings.TrimSuffix(s.RedirectURL, "oidc/callback"))
	}
	return a, err
}

// oauthError is the form of an error of an issuer (RFC 6749, section 4.1.2.1), so that it can be shown.
var oauthError = regexp.MustCompile(`^[a-z_]{1,64}$`)

// codeOf is the code in what the issuer has sent a browser back with. The state is checked first: without it the answer is to no question of ours.
func codeOf(q url.Values, state string) (string, error) {
	only := func(name string, most int) string {
		if all := q[name]; len(all) == 1 && len(all[0]) <= most {
			return all[0]
		}
		return ""
	}
	if subtle.ConstantTimeCompare([]byte(only("state", maxState)), []byte(state)) != 1 {
		return "", refused("The answer of the issuer is not to the sign-in that this browser began last. Begin again.")
	}
	if q.Has("error") {
		if e := only("error", maxState); oauthError.MatchString(e) {
			return "", refused("The issuer does not sign you in: %s.", e)
		}
		return "", refused("The issuer does not sign you in.")
	}
	code := only("code", maxCode)
	if code == "" {
		return "", refused("The answer of the issuer has no code. Begin again.")
	}
	return code, nil
}

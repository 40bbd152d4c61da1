package github

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// foundFor is how long an installation is known before it is asked for
	// again; one that was taken away is found out at once, by its token.
	foundFor = time.Hour
	// missingFor is the same for none. It is how long a new installation takes to be used.
	missingFor = time.Minute
	// tokenMargin is how long before its expiry, an hour after it was made, a token of an installation is
	// replaced. A call and a clock that is off fit into it.
	tokenMargin = 5 * time.Minute
)

// App is a GitHub App. It needs one of AppID and ClientID.
type App struct {
	AppID    int64
	ClientID string
	// PrivateKey is the PEM text of its RSA key.
	PrivateKey lifecycle.Secret
}

// String names the App for people.
func (a App) String() string {
	if a.ClientID != "" {
		return "App " + a.ClientID
	}
	return "App " + strconv.FormatInt(a.AppID, 10)
}

// Check says why the App cannot sign: its ids, or its key.
func (a App) Check() error {
	_, err := a.key()
	return err
}

func (a App) key() (*rsa.PrivateKey, error) {
	if (a.AppID > 0) == (a.ClientID != "") {
		return nil, errors.New("either an app id or a client id is required")
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.PrivateKey.Reveal()))
	if err != nil { // it may quote the key
		return nil, fmt.Errorf("%s: the private key is not an RSA key in PEM form; write the file that GitHub gave for download, whole", a)
	}
	return key, nil
}

// transport signs each call as the App itself.
func (a App) transport(next http.RoundTripper) (http.RoundTripper, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	return ghinstallation.NewAppsTransportWithOptions(next, a.AppID, ghinstallation.WithSigner(a.signer(key)))
}

func (a App) signer(key *rsa.PrivateKey) ghinstallation.Signer {
	signer := ghinstallation.NewRSASigner(jwt.SigningMethodRS256, key)
	if a.ClientID == "" {
		return signer
	}
	return clientSigner{signer, a.ClientID}
}

// clientSigner names a client id as the issuer, where the library knows app ids alone.
type clientSigner struct {
	ghinstallation.Signer
	clientID string
}

// Sign implements ghinstallation.Signer.
func (s clientSigner) Sign(claims jwt.Claims) (string, error) {
	if registered, ok := claims.(*jwt.RegisteredClaims); ok {
		registered.Issuer = s.clientID
	}
	return s.Signer.Sign(claims)
}

// app is an App at work.
type app struct {
	client *Client
	name   string
	id     int64 // 0: it is known by its client id
	// itself calls with the App's own word, for installations and deliveries.
	itself *credential
	found  *memo[finding]

	mu sync.Mutex
	of map[int64]*credential // by the installation's id
}

// finding is the installation on a place, or why there is none to be used.
type finding struct {
	who *credential
	id  int64 // of the installation
	err error
}

func (c *Client) newApp(of App) (*app, error) {
	signed, err := of.transport(c.transport)
	if err != nil {
		return nil, err
	}
	return &app{
		client: c, name: of.String(), id: of.AppID, itself: c.newCredential(of.String(), signed),
		found: newMemo[finding](), of: map[int64]*credential{},
	}, nil
}

// asItself is the choice of calls that the App makes in its own name.
func (a *app) asItself(context.Context) (*credential, error) { return a.itself, nil }

// choose tells who makes a call of a kind about a place: the token, or the App with the most such calls left;
// the first of them in the configuration, if several have as many.
func (c *Client) choose(ctx context.Context, at place, k kind) (*credential, error) {
	if c.token != nil {
		return c.token, nil
	}
	var best *credential
	var most int
	var errs []error
	for _, a := range c.apps {
		who, err := a.on(ctx, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if left := who.budget.left(k, time.Now()); best == nil || left > most {
			best, most = who, left
		}
	}
	if best == nil {
		return nil, worst(errs)
	}
	return best, nil
}

// worst is the error that says most: one that will pass, since what the others
// say may not be all; else what each of them says.
func worst(errs []error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, lifecycle.ErrUnavailable) }); i >= 0 {
		return errs[i]
	}
	all := errs[0]
	for _, err := range errs[1:] {
		all = fmt.Errorf("%w; %w", all, err)
	}
	return all
}

// on finds who calls for the App on a place.
func (a *app) on(ctx context.Context, at place) (*credential, error) {
	found, err := a.installed(ctx, at)
	return found.who, err
}

// installed finds the App's installation on a place.
func (a *app) installed(ctx context.Context, at place) (finding, error) {
	found, err := a.found.get(ctx, at.key(), func(ctx context.Context) (finding, time.Time, error) {
		found, err := a.find(ctx, at)
		switch {
		case err == nil:
			return found, time.Now().Add(foundFor), nil
		case errors.Is(err, lifecycle.ErrRefused):
			return finding{err: err}, time.Now().Add(missingFor), nil
		}
		return finding{}, time.Time{}, err
	})
	if err != nil {
		return finding{}, err
	}
	return found, found.err
}

func (a *app) find(ctx context.Context, at place) (finding, error) {
	op := operation{what: "find the installation of " + a.name, at: at, as: a.asItself}
	found, err := fetch(ctx, a.client, op, at.findInstallation)
	switch {
	case hasStatus(err, http.StatusNotFound):
		return finding{}, fmt.Errorf("%s is not installed on %s: %w; install it there", a.name, at, &StatusError{Status: http.StatusNotFound})
	case err != nil:
		return finding{}, err
	case found.SuspendedAt != nil:
		return finding{}, fmt.Errorf("%s is suspended on %s: %w", a.name, at, &StatusError{Status: http.StatusForbidden, Hint: "lift the suspension in the settings of its installation"})
	case found.GetID() == 0:
		return finding{}, unavailable(op, 0, errors.New("the answer has no id"))
	}
	return finding{who: a.installation(found.GetID(), at), id: found.GetID()}, nil
}

// installation is the credential of an installation, always the same for an id.
func (a *app) installation(id int64, at place) *credential {
	a.mu.Lock()
	defer a.mu.Unlock()
	who, ok := a.of[id]
	if !ok {
		tokens := &installationTokens{app: a, id: id, at: at, kept: newMemo[installationToken]()}
		who = a.client.bearing(fmt.Sprintf("%s, installation %d", a.name, id), tokens.token)
		who.renew = func() { tokens.kept.forget("") }
		a.of[id] = who
	}
	return who
}

// installations are those that were found, by id.
func (a *app) installations() []*credential {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*credential
	for _, id := range slices.Sorted(maps.Keys(a.of)) {
		all = append(all, a.of[id])
	}
	return all
}

// installationTokens makes the tokens of an installation, one at a time.
type installationTokens struct {
	app  *app
	id   int64
	at   place // where it was found first, for errors
	kept *memo[installationToken]
}

type installationToken struct{ secret lifecycle.Secret }

// token is a TokenSource.
func (t *installationTokens) token(ctx context.Context) (lifecycle.Secret, error) {
	token, err := t.kept.get(ctx, "", t.create)
	return token.secret, err
}

func (t *installationTokens) create(ctx context.Context) (installationToken, time.Time, error) {
	secret, expiresAt, err := t.app.createToken(ctx, t.id, t.at, nil)
	return installationToken{secret}, expiresAt.Add(-tokenMargin), err
}

// createToken creates a token of an installation, narrowed to some of its repositories and permissions; nil: with all of them.
func (a *app) createToken(ctx context.Context, id int64, at place, narrowed *api.InstallationTokenOptions) (lifecycle.Secret, time.Time, error) {
	op := operation{what: fmt.Sprintf("create a token of %s, installation %d,", a.name, id), at: at, pace: writes, as: a.asItself}
	made, err := fetch(ctx, a.client, op, func(ctx context.Context, as *api.Client) (*api.InstallationToken, *api.Response, error) {
		return as.Apps.CreateInstallationToken(ctx, id, narrowed)
	})
	switch {
	case narrowed == nil && (hasStatus(err, http.StatusNotFound) || hasStatus(err, http.StatusForbidden)):
		a.lose(id) // uninstalled or suspended: it is looked for again
		return "", time.Time{}, err
	case err != nil:
		return "", time.Time{}, err
	case !isToken(made.GetToken()) || made.GetExpiresAt().IsZero():
		return "", time.Time{}, unavailable(op, 0, errors.New("the answer has no token or no expiry"))
	}
	return lifecycle.Secret(made.GetToken()), made.GetExpiresAt().Time, nil
}

// lose forgets an installation.
func (a *app) lose(id int64) {
	a.mu.Lock()
	delete(a.of, id)
	a.mu.Unlock()
	a.found.clear()
}

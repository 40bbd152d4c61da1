package githubsim

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/appjwt"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// caller is who makes a call of GitHub's.
type caller struct {
	key          string              // what its budget is kept under
	app          int64               // of a JSON web token or an installation token; 0: neither
	installation *state.Installation // of an installation token
	token        *state.Token        // the installation token
	isApp        bool                // it bears a JSON web token
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

func withCaller(r *http.Request, c caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

var errCredentials = rest.Problem(http.StatusUnauthorized, "Bad credentials")

// identify says who calls. Any text passes for a personal access token; what claims to be an app's or an installation's must be.
// The caller is also told with an error: it is its budget that the call costs.
func (s *Server) identify(r *http.Request) (caller, error) {
	secret := rest.Bearer(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case secret == "":
		return caller{key: "anonymous"}, rest.Problem(http.StatusUnauthorized, "Requires authentication")
	case appjwt.LooksLike(secret):
		return s.identifyApp(secret)
	case strings.HasPrefix(secret, installationPrefix):
		return s.identifyInstallation(secret)
	}
	return caller{key: "token " + state.HashOf(secret)}, nil
}

func (s *Server) identifyApp(secret string) (caller, error) {
	anonymous := caller{key: "anonymous"}
	t, err := appjwt.Parse(secret)
	if err != nil {
		return anonymous, err
	}
	a := s.appOf(t.Claims.Issuer)
	if a == nil {
		return anonymous, rest.Problem(http.StatusNotFound, "Integration not found")
	}
	if err := t.Check(a.PublicKey, s.now()); err != nil {
		return anonymous, err
	}
	return caller{key: fmt.Sprintf("app %d", a.ID), app: a.ID, isApp: true}, nil
}

func (s *Server) identifyInstallation(secret string) (caller, error) {
	t := s.tokens[state.HashOf(secret)]
	if t == nil || t.Purpose != purposeInstallation || !s.now().Before(t.ExpiresAt) {
		return caller{key: "anonymous"}, errCredentials
	}
	a, in := s.installationOf(t.Installation)
	if in == nil { // taken away since
		return caller{key: "anonymous"}, errCredentials
	}
	return caller{key: fmt.Sprintf("installation %d", in.ID), app: a.ID, installation: in, token: t}, nil
}

// admit says whether the caller may make the call at all: an app's own calls need its JSON web token, all others another
// credential, which sees only the account it is of, and does only what its permissions allow.
func (c caller) admit(r *http.Request, rt route) error {
	switch {
	case rt.appsOnly && !c.isApp:
		return appjwt.ErrMalformed
	case !rt.appsOnly && c.isApp:
		return errCredentials
	case c.installation != nil && !c.token.Covers(scopeOf(r)) && scopeOf(r) != state.RunnerRepository: // that is public
		return rest.ErrNotFound
	case c.installation != nil && !permits(c.token.Permissions, rt.pattern) && scopeOf(r) != state.RunnerRepository:
		return errPermission
	}
	return nil
}

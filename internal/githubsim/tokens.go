package githubsim

import (
	"net/http"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// What a token is good for.
const (
	purposeRegister = protocol.EventRegister
	purposeRemove   = protocol.EventRemove

	purposeInstallation = "installation"
)

// scopeOf is the repository or organization in the path of a call, "" if it has neither.
func scopeOf(r *http.Request) string {
	if org := r.PathValue("org"); org != "" {
		return org
	}
	if r.PathValue("repo") == "" {
		return ""
	}
	return repositoryOf(r)
}

func repositoryOf(r *http.Request) string { return r.PathValue("owner") + "/" + r.PathValue("repo") }

func (s *Server) createToken(purpose string) rest.Endpoint {
	return func(r *http.Request) (*rest.Answer, error) {
		secret, hash := state.NewSecret()
		t := &state.Token{Purpose: purpose, Scope: scopeOf(r), ExpiresAt: s.now().Add(TokenLife)}
		err := s.change(func() error {
			s.tokens[hash] = t
			s.dirty[journal.Key{Kind: state.KindToken, ID: hash}] = t
			return nil
		})
		return rest.Created(rest.Object{"token": secret, "expires_at": t.ExpiresAt.UTC().Format(time.RFC3339)}), err
	}
}

// checkToken reports whether secret is a live token for this purpose and scope.
func (s *Server) checkToken(secret, purpose, scope string) error {
	t := s.tokens[state.HashOf(secret)]
	if t == nil || t.Purpose != purpose || !strings.EqualFold(t.Scope, scope) || !s.now().Before(t.ExpiresAt) {
		return rest.ErrNotFound // what GitHub answers to a wrong or expired token
	}
	return nil
}

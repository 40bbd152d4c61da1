package githubsim

import (
	"fmt"
	"net/http"

	"github.com/remuda-ci/remuda/internal/githubsim/oidc"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// mayHaveIDToken reports whether a job of the run may have the permission at all: pull requests from forks get none.
func (s *Server) mayHaveIDToken(r *state.Run) bool {
	return r.Event() != "pull_request" || !r.FromFork()
}

// giveIDTokens makes what a job asks for ID tokens with. It is good while the job runs.
func (s *Server) giveIDTokens(j *state.Job) (url, secret string) {
	if !j.IDToken {
		return "", ""
	}
	secret, j.IDTokenKey = state.NewSecret()
	return fmt.Sprintf("%s/_standin/oidc/jobs/%d?api-version=2.0", s.baseURL, j.ID), secret
}

// jobIDToken is the endpoint that a job asks for ID tokens, as ACTIONS_ID_TOKEN_REQUEST_URL names it.
func (s *Server) jobIDToken(r *http.Request) (*rest.Answer, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	j := s.jobs[id]
	if j == nil || j.Status != state.StatusInProgress || j.IDTokenKey == "" || j.IDTokenKey != state.HashOf(rest.Bearer(r)) {
		s.mu.Unlock()
		return nil, rest.Problem(http.StatusUnauthorized, "The token is not that of a running job that may ask for ID tokens.")
	}
	claims := s.site().IDTokenClaims(s.runs[j.RunID], j, s.now(), oidc.TokenLife)
	s.mu.Unlock()
	if audience := r.URL.Query().Get("audience"); audience != "" {
		claims["aud"] = audience
	}
	value, err := s.oidc.Sign(claims)
	if err != nil {
		return nil, err
	}
	return rest.OK(rest.Object{"count": len(value), "value": value}), nil
}

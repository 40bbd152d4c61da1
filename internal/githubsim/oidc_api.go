package githubsim

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/remuda-ci/remuda/internal/githubsim/oidc"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s *Server) issuerURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.baseURL
}

// oidcToken signs whatever it is asked to: the body is the claims, or {"claims": …}. What GitHub would fill in and the body
// does not say is filled in. The answer has the token as "value", as the endpoint inside a real job does.
func (s *Server) oidcToken(r *http.Request) (*rest.Answer, error) {
	var asked rest.Object
	if err := rest.Decode(r, &asked, false); err != nil {
		return nil, err
	}
	if inner, wrapped := asked["claims"].(map[string]any); wrapped && len(asked) == 1 {
		asked = inner
	}
	now := s.now()
	claims := rest.Object{
		"iss": s.issuerURL(), "jti": uuid.NewString(), "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(oidc.TokenLife).Unix(),
	}
	if repository, given := asked["repository"].(string); given {
		owner, _, _ := strings.Cut(repository, "/")
		claims["aud"] = s.issuerURL() + "/" + owner
		claims["sub"] = "repo:" + repository + ":ref:refs/heads/" + state.Branch
		claims["repository_owner"], claims["repository_owner_id"] = owner, fmt.Sprint(state.IDOf(owner))
		claims["repository_id"], claims["ref"], claims["runner_environment"] = fmt.Sprint(state.IDOf(repository)), "refs/heads/"+state.Branch, "self-hosted"
	}
	for k, v := range asked {
		claims[k] = v
	}
	token, err := s.oidc.Sign(claims)
	return rest.OK(rest.Object{"value": token}), err
}

func (s *Server) oidcKeys(*http.Request) (*rest.Answer, error) {
	key, id, err := s.oidc.Key()
	if err != nil {
		return nil, err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return rest.OK(rest.Object{"keys": []rest.Object{{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": id, "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
	}}}), nil
}

func (s *Server) oidcConfiguration(*http.Request) (*rest.Answer, error) {
	base := s.issuerURL()
	return rest.OK(rest.Object{
		"issuer": base, "jwks_uri": base + "/.well-known/jwks", "subject_types_supported": []string{"public", "pairwise"},
		"response_types_supported": []string{"id_token"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		"scopes_supported": []string{"openid"},
		"claims_supported": []string{"sub", "aud", "exp", "iat", "iss", "jti", "nbf", "ref", "repository", "repository_id", "repository_owner",
			"repository_owner_id", "run_id", "run_number", "run_attempt", "actor", "workflow", "event_name", "runner_environment"},
	}), nil
}

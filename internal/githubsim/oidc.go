package githubsim

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"

	"github.com/google/uuid"
)

const (
	keyBits      = 2048
	idTokenLife  = 5 * time.Minute // as GitHub's
	oidcKeyBlock = "PRIVATE KEY"
)

// issuer signs ID tokens as token.actions.githubusercontent.com does. Its key is made at the first use and kept.
type issuer struct {
	path string
	now  func() time.Time

	mu  sync.Mutex
	key *rsa.PrivateKey
	id  string
}

func (i *issuer) load() (*rsa.PrivateKey, string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.key != nil {
		return i.key, i.id, nil
	}
	key, err := i.read()
	if errors.Is(err, fs.ErrNotExist) {
		key, err = i.create()
	}
	if err != nil {
		return nil, "", fmt.Errorf("key of the ID token issuer: %w", err)
	}
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))
	i.key, i.id = key, base64.RawURLEncoding.EncodeToString(sum[:])
	return i.key, i.id, nil
}

func (i *issuer) read() (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(i.path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", i.path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", i.path, err)
	}
	key, isRSA := parsed.(*rsa.PrivateKey)
	if !isRSA {
		return nil, fmt.Errorf("%s holds no RSA key", i.path)
	}
	return key, nil
}

func (i *issuer) create() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(i.path, pem.EncodeToMemory(&pem.Block{Type: oidcKeyBlock, Bytes: der}), 0o600)
}

// sign makes a JSON Web Token of the claims, with RS256 (RFC 7515).
func (i *issuer) sign(claims rest.Object) (string, error) {
	key, id, err := i.load()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, v := range []any{rest.Object{"typ": "JWT", "alg": "RS256", "kid": id, "x5t": id}, claims} {
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("encode ID token: %w", err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	input := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign ID token: %w", err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

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
		"iss": s.issuerURL(), "jti": uuid.NewString(), "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(idTokenLife).Unix(),
	}
	if repository, given := asked["repository"].(string); given {
		owner, _, _ := strings.Cut(repository, "/")
		claims["aud"] = s.issuerURL() + "/" + owner
		claims["sub"] = "repo:" + repository + ":ref:refs/heads/" + branch
		claims["repository_owner"], claims["repository_owner_id"] = owner, fmt.Sprint(idOf(owner))
		claims["repository_id"], claims["ref"], claims["runner_environment"] = fmt.Sprint(idOf(repository)), "refs/heads/"+branch, "self-hosted"
	}
	for k, v := range asked {
		claims[k] = v
	}
	token, err := s.oidc.sign(claims)
	return rest.OK(rest.Object{"value": token}), err
}

func (s *Server) oidcKeys(*http.Request) (*rest.Answer, error) {
	key, id, err := s.oidc.load()
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

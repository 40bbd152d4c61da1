// Package issuertest is an issuer of ID tokens for tests, in process: it has a
// key, publishes it, and signs whatever a test asks for, also what a good issuer would not.
package issuertest

import (
	"cmp"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Audience is that of the tokens, unless a test says another.
const Audience = "https://remuda.test"

// Issuer issues tokens. Its URL is a server of this process.
type Issuer struct {
	*httptest.Server
	tb  testing.TB
	ids atomic.Int64

	// Now is the time that tokens are issued at.
	Now func() time.Time
	// Asked counts the times that the keys were asked for.
	Asked atomic.Int64
	// Away makes the issuer answer with errors.
	Away atomic.Bool

	mu  sync.Mutex
	kid string
	key *rsa.PrivateKey
	// keysURL is where the keys are said to be, moved where they are, and keys
	// what they are; empty: here, and as they should be.
	keysURL, moved, keys string
	// endpoints are those beside the keys, by their names in the description. say has further fields of the description.
	endpoints map[string]http.HandlerFunc
	say       map[string]any
}

// Claims are what a token says beside, or instead of, what is usual. A nil value leaves one out.
type Claims map[string]any

// New starts an issuer. All of a process have the same key until Rotate.
func New(tb testing.TB) *Issuer {
	tb.Helper()
	key, err := generated()
	if err != nil {
		tb.Fatal(err)
	}
	i := &Issuer{tb: tb, Now: time.Now, kid: "first", key: key, endpoints: map[string]http.HandlerFunc{}, say: map[string]any{}}
	i.Server = httptest.NewServer(i)
	tb.Cleanup(i.Close)
	return i
}

// generated is the first key of every issuer: making one takes a while.
var generated = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// Rotate makes another key, under an id, and withdraws the last one.
func (i *Issuer) Rotate(kid string) {
	i.tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.tb.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kid, i.key = kid, key
}

// KeysAt says that the keys are somewhere else.
func (i *Issuer) KeysAt(url string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keysURL = url
}

// Moved redirects who asks for the keys to another issuer.
func (i *Issuer) Moved(url string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.moved = url
}

// Publish answers with other keys than those that there are.
func (i *Issuer) Publish(keys string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Handle answers at an endpoint that the issuer names in its description, such as token_endpoint.
func (i *Issuer) Handle(endpoint string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endpoints[endpoint] = h
	i.say[endpoint] = i.URL + "/" + endpoint
}

// Say adds a field to the issuer's description. A nil value is as if it was missing.
func (i *Issuer) Say(key string, value any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.say[key] = value
}

// ServeHTTP answers as GitHub's issuer does, and at the endpoints of Handle.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	endpoint := i.endpoints[strings.TrimPrefix(r.URL.Path, "/")]
	i.mu.Unlock()
	if endpoint != nil { // which may sign a token
		endpoint(w, r)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		at := cmp.Or(i.keysURL, i.URL+"/.well-known/jwks")
		said := map[string]any{"issuer": i.URL, "jwks_uri": at, "id_token_signing_alg_values_supported": []string{"RS256"}}
		maps.Copy(said, i.say)
		answer = said
	case "/.well-known/jwks":
		i.Asked.Add(1)
		switch {
		case i.moved != "":
			http.Redirect(w, r, i.moved+r.URL.Path, http.StatusFound)
			return
		case i.keys != "":
			_, _ = w.Write([]byte(i.keys)) // the client has gone
			return
		}
		answer = map[string]any{"keys": []any{
			// RFC 7517, appendix A.1
			map[string]string{"kty": "EC", "kid": "of another kind", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"},
			map[string]string{"kty": "RSA", "kid": i.kid, "use": "sig", "alg": "RS256", "n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())},
		}}
	default:
		http.NotFound(w, r)
		return
	}
	if i.Away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}

// Claims are those of a good token of run 42 of acme/app, with changes.
func (i *Issuer) Claims(changes Claims) Claims {
	now := i.Now()
	c := Claims{
		"iss": i.URL, "aud": Audience, "jti": fmt.Sprint("token-", i.ids.Add(1)), "sub": "repo:acme/app:ref:refs/heads/main",
		"iat": now.Unix(), "nbf": now.Add(-10 * time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"repository": "acme/app", "repository_id": "1", "repository_owner": "acme", "repository_owner_id": "7",
		"run_id": "42", "run_attempt": "2", "event_name": "push", "ref": "refs/heads/main", "workflow": "CI",
		"job_workflow_ref": "acme/app/.github/workflows/ci.yml@refs/heads/main",
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token is a good token, with changes to what it says.
func (i *Issuer) Token(changes Claims) string {
	i.tb.Helper()
	return i.Sign(Claims{"alg": "RS256", "typ": "JWT", "kid": i.KeyID()}, i.Claims(changes))
}

// KeyID is the id of the key.
func (i *Issuer) KeyID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.kid
}

// Sign signs a header and claims with the key, whatever the header says.
func (i *Issuer) Sign(header, claims Claims) string {
	i.tb.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	text := i.Unsigned(header, claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.tb.Fatal(err)
	}
	return text + "." + encode(signature)
}

// Confused is a good token except for its algorithm, HS256, and its signature, which
// is made with the public key as the secret.
func (i *Issuer) Confused() string {
	i.tb.Helper()
	text := i.Unsigned(Claims{"alg": "HS256", "typ": "JWT", "kid": i.KeyID()}, i.Claims(nil))
	i.mu.Lock()
	defer i.mu.Unlock()
	public, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		i.tb.Fatal(err)
	}
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// Unsigned is a token without its signature.
func (i *Issuer) Unsigned(header, claims Claims) string {
	i.tb.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		i.tb.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		i.tb.Fatal(err)
	}
	return encode(h) + "." + encode(c)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

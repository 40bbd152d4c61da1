package oidc

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
	"os"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

const (
	keyBits      = 2048
	TokenLife    = 5 * time.Minute // as GitHub's
	oidcKeyBlock = "PRIVATE KEY"
)

// Issuer signs ID tokens as token.actions.githubusercontent.com does. Its key is made at the first use and kept.
type Issuer struct {
	path string

	mu  sync.Mutex
	key *rsa.PrivateKey
	id  string
}

// New returns an issuer whose key is in the file at path.
func New(path string) *Issuer { return &Issuer{path: path} }

// Key returns the key and its id.
func (i *Issuer) Key() (*rsa.PrivateKey, string, error) {
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

func (i *Issuer) read() (*rsa.PrivateKey, error) {
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

func (i *Issuer) create() (*rsa.PrivateKey, error) {
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

// Sign makes a JSON Web Token of the claims, with RS256 (RFC 7515).
func (i *Issuer) Sign(claims rest.Object) (string, error) {
	key, id, err := i.Key()
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

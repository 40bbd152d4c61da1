package appjwt

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

const (
	// maxJWTLife is how far ahead GitHub lets an app's token expire.
	maxJWTLife = 10 * time.Minute
	// clockSkew is how far GitHub lets an app's clock be ahead.
	clockSkew = 60 * time.Second
)

var ErrMalformed = rest.Problem(http.StatusUnauthorized, "A JSON web token could not be decoded")

// LooksLike tells the token of an app from the others, which have no dots.
func LooksLike(secret string) bool { return strings.Count(secret, ".") == 2 }

type jwt struct {
	header struct {
		Alg string `json:"alg"`
	}
	Claims struct {
		Issuer    any     `json:"iss"` // the app's id, as a text or a number, or its client id
		IssuedAt  float64 `json:"iat"`
		ExpiresAt float64 `json:"exp"`
	}
	signed    string
	signature []byte
}

func Parse(secret string) (*jwt, error) {
	parts := strings.Split(secret, ".")
	if len(parts) != 3 {
		return nil, ErrMalformed
	}
	t := &jwt{signed: parts[0] + "." + parts[1]}
	for i, into := range []any{&t.header, &t.Claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			return nil, ErrMalformed
		}
	}
	var err error
	if t.signature, err = base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return nil, ErrMalformed
	}
	return t, nil
}

// Check holds the token against the key and the time, as GitHub documents it for apps.
func (t *jwt) Check(key *rsa.PublicKey, now time.Time) error {
	sum := sha256.Sum256([]byte(t.signed))
	expires, issued := time.Unix(int64(t.Claims.ExpiresAt), 0), time.Unix(int64(t.Claims.IssuedAt), 0)
	switch {
	case t.header.Alg != "RS256" || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], t.signature) != nil:
		return ErrMalformed
	case t.Claims.IssuedAt == 0:
		return rest.Problem(http.StatusUnauthorized, "Missing 'issued at' claim ('iat') in assertion")
	case issued.After(now.Add(clockSkew)):
		return rest.Problem(http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case !expires.After(now):
		return rest.Problem(http.StatusUnauthorized, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.After(now.Add(maxJWTLife + clockSkew)):
		return rest.Problem(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	return nil
}

// ParseKey reads the public key of an app from either half of it, in PEM.
func ParseKey(text string) (*rsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY": // what GitHub gives
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return &key.PublicKey, nil
	case *rsa.PublicKey:
		return key, nil
	}
	return nil, fmt.Errorf("no RSA key")
}

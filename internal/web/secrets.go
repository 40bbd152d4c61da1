package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/secretfile"
)

// webhookSecret is one in a file or a variable.
var webhookSecret = secretfile.Kind{Noun: "secret"}

// SecretSource gives the secrets with which a delivery may be signed. It is
// asked for each delivery, so that secrets may be replaced while the daemon runs: add
// the new one, configure it at GitHub, and then remove the old one.
type SecretSource func() ([]lifecycle.Secret, error)

// SecretFile reads the secrets from a file, one in each line.
func SecretFile(path string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		secrets, err := webhookSecret.Read(path)
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: %w", err)
		}
		return secrets, nil
	}
}

// SecretVariable reads them from an environment variable, one in each line.
func SecretVariable(name string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		secrets, err := webhookSecret.Split([]byte(os.Getenv(name)))
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: the variable %s %w", name, err)
		}
		return secrets, nil
	}
}

// secrets are those of the source. None, or an empty one, is an error.
func (s SecretSource) secrets() ([]lifecycle.Secret, error) {
	secrets, err := s()
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(secrets, ""):
		return nil, errors.New("a webhook secret is empty")
	case len(secrets) == 0:
		return nil, errors.New("there is no webhook secret")
	}
	return secrets, nil
}

// signatureOf reads the value of X-Hub-Signature-256; false if it is malformed.
func signatureOf(header string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(header, "sha256=")
	signature, err := hex.DecodeString(digits)
	return signature, ok && err == nil && len(signature) == sha256.Size
}

// signed reports whether one of the secrets signed the body. It takes as long
// whichever did, and however much of a signature is right.
func signed(body, signature []byte, secrets []lifecycle.Secret) bool {
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), signature) {
			found = true
		}
	}
	return found
}

package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The bounds of a file of secrets.
const (
	maxSecretsBytes = 16 << 10
	maxSecrets      = 16
)

// SecretSource gives the secrets with which a delivery may be signed. It is
// asked for each delivery, so that secrets may be replaced while the daemon runs: add
// the new one, configure it at GitHub, and then remove the old one.
type SecretSource func() ([]lifecycle.Secret, error)

// SecretFile reads the secrets from a file, one in each line.
func SecretFile(path string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		text, err := io.ReadAll(io.LimitReader(f, maxSecretsBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: %w", err)
		}
		secrets, err := splitSecrets(text)
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: %s %w", path, err)
		}
		return secrets, nil
	}
}

// SecretVariable reads them from an environment variable, one in each line.
func SecretVariable(name string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		secrets, err := splitSecrets([]byte(os.Getenv(name)))
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: the variable %s %w", name, err)
		}
		return secrets, nil
	}
}

// splitSecrets takes a secret from each line that is not blank. With an empty
// secret anyone could sign, so there is none.
func splitSecrets(text []byte) ([]lifecycle.Secret, error) {
	if len(text) > maxSecretsBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxSecretsBytes)
	}
	var secrets []lifecycle.Secret
	for line := range bytes.Lines(text) {
		if secret := bytes.TrimSpace(line); len(secret) > 0 {
			secrets = append(secrets, lifecycle.Secret(secret))
		}
	}
	switch {
	case len(secrets) == 0:
		return nil, errors.New("holds no secret; write one in a line of its own")
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("holds %d secrets; write at most %d", len(secrets), maxSecrets)
	}
	return secrets, nil
}

// secrets are those of the source. None, or an empty one, is an error.
func (s SecretSource) secrets() ([]lifecycle.Secret, error) {
	secrets, err := s()
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if secret.Reveal() == "" {
			return nil, errors.New("a webhook secret is empty")
		}
	}
	if len(secrets) == 0 {
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

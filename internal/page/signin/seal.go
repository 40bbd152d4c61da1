package signin

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// seals encrypt and authenticate what browsers keep, with AES-256-GCM.
//
// A browser keeps the session itself, and not the id of one that controld remembers: any replica behind a load balancer must know a
// person that another has signed in, and a restart should not sign people out. So all replicas read the same keys from a file. The first
// key of the file seals and each of them opens, so that keys can be changed without signing people out.
type seals struct {
	keys func() ([]lifecycle.Secret, error)
	// of is what the seals are about: those of another issuer or client are not opened.
	of string
}

// maxSealed is the longest text that is opened, in bytes. Browsers keep 4 KiB for a cookie.
const maxSealed = 4 << 10

var errNotSealed = errors.New("it was not sealed here")

// seal makes a text of a value, for one purpose.
func (s seals) seal(purpose string, v any) (string, error) {
	all, err := s.keys()
	if err != nil {
		return "", err
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false) // which makes a path with many & six times as long
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("seal %s: %w", purpose, err)
	}
	with, err := s.cipher(all[0], purpose)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(with.Seal(nil, nil, plain.Bytes(), nil)), nil
}

// open reads a text that was sealed for the same purpose: errNotSealed, or why that is not known now.
func (s seals) open(purpose, sealed string, into any) error {
	if len(sealed) > maxSealed {
		return errNotSealed
	}
	secret, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return errNotSealed
	}
	all, err := s.keys()
	if err != nil {
		return err
	}
	for _, key := range all {
		with, err := s.cipher(key, purpose)
		if err != nil {
			return err
		}
		if plain, err := with.Open(nil, nil, secret, nil); err == nil {
			return json.Unmarshal(plain, into)
		}
	}
	return errNotSealed
}

// cipher has a key of its own for each purpose, so that one cookie is not taken for another. It chooses a random nonce for each seal.
func (s seals) cipher(key lifecycle.Secret, purpose string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, []byte(key.Reveal()), nil, "remuda's page, "+purpose+"\n"+s.of, 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

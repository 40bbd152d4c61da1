package state

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// NewSecret returns a secret and the hash by which it is kept.
func NewSecret() (secret, hash string) {
	secret = rand.Text()
	return secret, HashOf(secret)
}

// HashOf is the hash by which a secret is kept.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

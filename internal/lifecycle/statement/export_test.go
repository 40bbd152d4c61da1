package statement

import (
	"crypto/ed25519"
	"testing"
)

// SealForTest signs a payload that Sign would not make.
func SealForTest(t *testing.T, payload []byte, key ed25519.PrivateKey) string {
	t.Helper()
	text, err := seal(payload, key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

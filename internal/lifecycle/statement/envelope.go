package statement

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// PayloadType is that of every statement of in-toto in a DSSE envelope.
const PayloadType = "application/vnd.in-toto+json"

// MaxEnvelope is the length of an envelope in bytes at most. One of an agent has about 1,700.
const MaxEnvelope = 4096

// Key is a public key of ed25519: its 32 bytes in base64, with padding.
type Key string

// KeyOf is the public half of a key.
func KeyOf(key ed25519.PrivateKey) Key {
	public, _ := key.Public().(ed25519.PublicKey)
	return KeyFrom(public)
}

// KeyFrom is a key from its bytes.
func KeyFrom(public []byte) Key { return Key(base64.StdEncoding.EncodeToString(public)) }

// Valid reports whether the key is one.
func (k Key) Valid() bool { return k.Bytes() != nil }

// ID is a short name of the key, 16 hexadecimal digits: the beginning of its SHA-256.
func (k Key) ID() string {
	sum := sha256.Sum256(k.Bytes())
	return hex.EncodeToString(sum[:8])
}

// Bytes are those of the key; nil if it is not one. The length in base64 is checked first: the decoder takes line breaks within.
func (k Key) Bytes() ed25519.PublicKey {
	b, err := base64.StdEncoding.Strict().DecodeString(string(k))
	if err != nil || len(b) != ed25519.PublicKeySize || len(k) != base64.StdEncoding.EncodedLen(ed25519.PublicKeySize) {
		return nil
	}
	return b
}

// envelope is a DSSE envelope (https://github.com/secure-systems-lab/dsse).
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid,omitempty"`
	Sig   []byte `json:"sig"`
}

// signed is what DSSE signs: the pre-authentication encoding, which binds the type to the payload.
func signed(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(PayloadType), PayloadType, len(payload), payload)
}

func seal(payload []byte, key ed25519.PrivateKey) (string, error) {
	text, err := json.Marshal(envelope{PayloadType, payload, []signature{{KeyOf(key).ID(), ed25519.Sign(key, signed(payload))}}})
	switch {
	case err != nil:
		return "", fmt.Errorf("encode envelope: %w", err)
	case len(text) > MaxEnvelope:
		return "", fmt.Errorf("the envelope has %d bytes, %d are allowed", len(text), MaxEnvelope)
	}
	return string(text), nil
}

// unseal returns the payload of an envelope that the key has signed.
func unseal(text string, key Key) ([]byte, error) {
	public := key.Bytes()
	if public == nil {
		return nil, errors.New("the key is none of ed25519: write its 32 bytes in base64")
	}
	if len(text) > MaxEnvelope {
		return nil, fmt.Errorf("its envelope is longer than %d bytes", MaxEnvelope)
	}
	var e envelope
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return nil, errors.New("it is no DSSE envelope")
	}
	switch {
	case e.PayloadType != PayloadType:
		return nil, errors.New("its envelope has a payload of another type than " + PayloadType)
	case len(e.Signatures) != 1:
		return nil, errors.New("its envelope has not one signature")
	case !ed25519.Verify(public, signed(e.Payload), e.Signatures[0].Sig):
		return nil, fmt.Errorf("its signature is not of key %s", key.ID())
	}
	return e.Payload, nil
}

// Package secretfile reads secrets from texts that have one in each line: the tokens of workers, and what
// webhooks are signed with.
package secretfile

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The bounds of a text.
const (
	maxBytes   = 16 << 10
	maxSecrets = 16
)

// Kind is what a text holds.
type Kind struct {
	// Noun is the word for one of them in errors.
	Noun string
	// Least is how many bytes each must have.
	Least int
}

// Read reads a file. An error names the file and nothing of what is in it.
func (k Kind) Read(path string) ([]lifecycle.Secret, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	return k.split(path, text)
}

// read reads no more of a file than shows that it is too large.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// split is Split of what a file has.
func (k Kind) split(path string, text []byte) ([]lifecycle.Secret, error) {
	secrets, err := k.Split(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return secrets, nil
}

// Split takes a secret from each line that is not blank. With an empty secret anyone could sign, so there is
// none. An error has no subject: "holds no token".
func (k Kind) Split(text []byte) ([]lifecycle.Secret, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxBytes)
	}
	var secrets []lifecycle.Secret
	n := 0
	for line := range bytes.Lines(text) {
		n++
		secret := bytes.TrimSpace(line)
		switch {
		case len(secret) == 0:
			continue
		case len(secret) < k.Least:
			return nil, fmt.Errorf("has a %s of %d bytes in line %d; write at least %d, such as those of `openssl rand -hex 32`", k.Noun, len(secret), n, k.Least)
		}
		secrets = append(secrets, lifecycle.Secret(secret))
	}
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("holds no %s; write one in a line of its own", k.Noun)
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("holds %d %ss; write at most %d", len(secrets), k.Noun, maxSecrets)
	}
	return secrets, nil
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// mostStatements bounds the file of VerifyReset, in bytes.
const mostStatements = 16 << 20

// VerifyReset verifies the statements of resets in a file, "-" for standard input: what `why --statement` writes, or DSSE envelopes. key is
// the public key of the agent in base64; empty: the one that the file has beside each envelope. It calls nothing.
func (a *App) VerifyReset(file, key string) error {
	given := statement.Key(key)
	if key != "" && !given.Valid() {
		return failure.Misused("--key is no public key of ed25519: write its 32 bytes in base64")
	}
	in, err := a.openStatements(file)
	if err != nil {
		return failure.Of("read statements", err)
	}
	defer in.Close()
	read := json.NewDecoder(io.LimitReader(in, mostStatements))
	for n := 1; ; n++ {
		var raw json.RawMessage
		switch err := read.Decode(&raw); {
		case errors.Is(err, io.EOF) && n == 1:
			return failure.Of("verify", errors.New("there is no statement in "+file))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failure.Of(fmt.Sprintf("read statement %d", n), err)
		}
		text, err := verified(raw, given)
		if err == nil {
			_, err = fmt.Fprintln(a.Stdout, text)
		}
		if err != nil {
			return failure.Of(fmt.Sprintf("verify statement %d", n), err)
		}
	}
}

func (a *App) openStatements(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(file)
}

// verified says what one statement says, by the given key or the one beside its envelope.
func verified(raw json.RawMessage, key statement.Key) (string, error) {
	var s view.Statement
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", err
	}
	if s.Envelope == nil {
		s.Envelope = raw
	}
	if key == "" {
		key = s.PublicKey
	}
	if key == "" {
		return "", errors.New("it has no key beside it: write --key with the one of the host's agent")
	}
	r, err := statement.Open(string(s.Envelope), key)
	switch {
	case err != nil:
		return "", err
	case s.InstanceID != "" && s.InstanceID != r.Host:
		return "", fmt.Errorf("it is about host %s and stands beside %s", r.Host, s.InstanceID)
	}
	return view.Verified(r, key), nil
}

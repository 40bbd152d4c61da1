package cli_test

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func signerOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// stated is a line of `remuda why --statement`, with the envelope in it.
func stated(t *testing.T, change func(*remudav1.ResetStatement)) (line, envelope string) {
	t.Helper()
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	envelope, err := statement.Sign(statement.Reset{
		Host: "i-0b22a22eec53b9321", BootID: "boot", Assignment: 6, RunBefore: "acme/shop/41", Level: statement.LevelSlate, Result: statement.ResultClean,
		Checked: []statement.Check{{Name: "directories"}, {Name: "disk space"}}, BegunAt: at, EndedAt: at.Add(2 * time.Second),
	}, signerOf(1))
	if err != nil {
		t.Fatal(err)
	}
	s := &remudav1.ResetStatement{InstanceId: "i-0b22a22eec53b9321", Assignment: 6, Envelope: envelope, PublicKey: statement.KeyOf(signerOf(1)).Bytes()}
	if change != nil {
		change(s)
	}
	line, err = view.Statements(&remudav1.ExplainRunResponse{Statements: []*remudav1.ResetStatement{s}})
	if err != nil {
		t.Fatal(err)
	}
	return line, envelope
}

func TestVerifyReset(t *testing.T) {
	t.Parallel()
	line, envelope := stated(t, nil)
	otherKey, _ := stated(t, func(s *remudav1.ResetStatement) { s.PublicKey = statement.KeyOf(signerOf(2)).Bytes() })
	otherHost, _ := stated(t, func(s *remudav1.ResetStatement) { s.InstanceId = "i-2" })
	its, another := string(statement.KeyOf(signerOf(1))), string(statement.KeyOf(signerOf(2)))
	says := "i-0b22a22eec53b9321, assignment 6: clean after run acme/shop/41 by level slate at 2026-03-02T12:00:02Z, " +
		"2 checks with 0 findings; signed by key " + statement.KeyOf(signerOf(1)).ID() + "\n"
	tests := map[string]struct{ in, key, out, err string }{
		"as why writes it":      {line, "", says, ""},
		"two":                   {line + line, "", says + says, ""},
		"an envelope":           {envelope, its, says, ""},
		"an envelope, no key":   {envelope, "", "", "verify statement 1: it has no key beside it"},
		"another key":           {line, another, "", "verify statement 1: its signature is not of key"},
		"another key beside it": {line + otherKey, "", says, "verify statement 2: its signature is not of key"},
		"beside another host":   {otherHost, "", "", "verify statement 1: it is about host i-0b22a22eec53b9321 and stands beside i-2"},
		"no key":                {line, "x", "", "--key is no public key"},
		"nothing":               {"", "", "", "there is no statement in -"},
		"no JSON":               {"x", "", "", "read statement 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			app := &cli.App{Stdin: strings.NewReader(tt.in), Stdout: &out}
			err := app.VerifyReset("-", tt.key)
			if out.String() != tt.out || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("printed %q, error %v; want %q, %q", out.String(), err, tt.out, tt.err)
			}
		})
	}
}

// The commands of docs/agentd.md verify a statement by openssl, and refuse a changed one.
func TestVerifyByOpenSSL(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"openssl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(err) // scripts/host-tools installs it
		}
	}
	page, err := os.ReadFile("../../docs/agentd.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- run by a test -->\n```sh\n")
	script, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/agentd.md has no commands")
	}
	line, _ := stated(t, nil)
	other, _ := stated(t, func(s *remudav1.ResetStatement) { s.PublicKey = statement.KeyOf(signerOf(2)).Bytes() })
	for name, tt := range map[string]struct {
		line string
		good bool
	}{"signed": {line, true}, "by another key": {other, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "statements.json"), []byte(tt.line), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.good || strings.Contains(string(out), "Verified Successfully") != tt.good {
				t.Errorf("error %v:\n%s", err, out)
			}
		})
	}
}

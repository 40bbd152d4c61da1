package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatCannotBeRunExitsWith2(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-that-is-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Nothing listens on port 1.
	empty := filepath.Join(t.TempDir(), "empty-token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	here := []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1", "--runner", t.TempDir()}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no arguments":      {nil, "usage"},
		"no token":          {[]string{"--repository", "acme/app"}, "usage"},
		"no such token":     {[]string{"--repository", "acme/app", "--token-file", token + "s"}, "--token-file"},
		"an empty token":    {[]string{"--repository", "acme/app", "--token-file", empty}, "--token-file: " + empty + " holds no token"},
		"an unknown output": {append(here, "--output", "xml"), "usage"},
		"an unknown check":  {append(here, "--only", "labels,x"), `no check "x"`},
		"no runner":         {here, "not an unpacked actions/runner"},
		"no GitHub":         {here[:6], "cannot reach GitHub at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: check the address"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, progress bytes.Buffer
			code, err := run(t.Context(), c.args, &out, &progress)
			if code != exitFailed || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, %v; want %d and %s", code, err, exitFailed, c.want)
			}
			if err != nil && strings.Contains(err.Error()+progress.String(), "secret") {
				t.Errorf("the token is in %v and %s", err, &progress)
			}
		})
	}
}

// TestReadableTokenIsWarnedOf makes no call: nothing listens on port 1.
func TestReadableTokenIsWarnedOf(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o644: true} {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("a-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(token, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		var out, progress bytes.Buffer
		_, _ = run(t.Context(), []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1"}, &out, &progress)
		if got := strings.Contains(progress.String(), "warning: others can read the token: chmod 600 "+token+"\n"); got != warns {
			t.Errorf("a token of mode %s is warned of: %t, want %t", mode, got, warns)
		}
	}
}

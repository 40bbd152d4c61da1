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
	here := []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1", "--runner", t.TempDir()}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no arguments":      {nil, "usage"},
		"no token":          {[]string{"--repository", "acme/app"}, "usage"},
		"no such token":     {[]string{"--repository", "acme/app", "--token-file", token + "s"}, "--token-file"},
		"an unknown output": {append(here, "--output", "xml"), "usage"},
		"an unknown check":  {append(here, "--only", "labels,x"), `no check "x"`},
		"no runner":         {here, "not an unpacked actions/runner"},
		"no GitHub":         {here[:6], "connection refused"},
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

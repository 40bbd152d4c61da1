package githubsim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Both ways of asking a runner for its version give the same.
func TestRunnerSaysItsVersion(t *testing.T) {
	h := start(t).newHost("versioned")
	out, err := h.command(nil, "bin/Runner.Listener", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.TrimSuffix(string(out), "\n")
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(said) {
		t.Errorf("--version says %q", out)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "bin", "Runner.Listener.deps.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Libraries map[string]any }
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if _, there := manifest.Libraries["Runner.Listener/"+said]; !there || len(manifest.Libraries) != 1 {
		t.Errorf("manifest %s, want version %s", text, said)
	}
}

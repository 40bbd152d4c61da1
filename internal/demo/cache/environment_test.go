package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// The configuration is valid, whatever the environment has, and its caches are where go and npm keep theirs.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"EXAMPLE_SOURCE": `/a "quoted" \ path: #1`, "GOPROXY": "https://a.example.com,direct", "npm_config_cafile": "/é.pem"}
	path := filepath.Join(t.TempDir(), "controld.yaml")
	if err := os.WriteFile(path, []byte("github: {token_env: TOKEN}"+configuration(environment)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(environment, c.Compute.Process.Environment); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	var paths []string
	for _, one := range c.Pools["default"].Caches {
		paths = append(paths, one.Paths...)
	}
	if diff := cmp.Diff([]string{"~/go/pkg/mod", "~/.cache/go-build", "~/.npm"}, paths); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

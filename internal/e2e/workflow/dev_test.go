package workflow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// newDevStage starts `controld dev`, which has no TLS and ends its hosts by itself. Its configuration has a rule for the repository.
func newDevStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, dir: t.TempDir(), log: &local.Log{}}
	t.Cleanup(s.nothingLeft)
	s.startGitHub()
	path := filepath.Join(s.dir, "controld.yaml")
	if err := os.WriteFile(path, []byte(s.devConfiguration()), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	s.daemon, err = local.Start(ctx, local.Options{
		Bin: testrun.System.Dir(t), StateDir: filepath.Join(s.dir, "dev"), Config: path, Stderr: s.log, GitHubAddr: strings.TrimPrefix(s.github.URL(), "http://"),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	t.Cleanup(func() {
		if err := s.daemon.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.admin = s.daemon.Fleet
	return s
}

func (s *stage) devConfiguration() string {
	return fmt.Sprintf(`
callers:
  audience: %s
  repositories:
    - {repository_id: %s, repository: %s, events: [workflow_dispatch], max_hosts: 2}
log: {format: json}
`, audience, s.claims(s.token(map[string]any{"repository": repository}))["repository_id"], repository)
}

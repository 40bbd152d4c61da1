// Package action_test runs the tests of the Action under the Node.js that GitHub runs it with.
package action_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

// TestSources runs the tests of src. Those of the bundle against a real controld are in internal/e2e/workflow.
func TestSources(t *testing.T) {
	files := []string{"scripts/action", "action/package-lock.json"}
	for _, pattern := range []string{"src/*.js", "src/gen/remuda/v1/*.js", "test/*.js"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files by %s: %v", pattern, err)
		}
		for _, file := range found {
			files = append(files, filepath.Join("action", file))
		}
	}
	tools, err := pinned.Tools{Script: "scripts/action-tools", Files: files}.Install()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(tools.Root, "scripts", "action"), "test")
	cmd.Env = append(os.Environ(), "NODE_OPTIONS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("scripts/action test: %v\n%s", err, out)
	}
}

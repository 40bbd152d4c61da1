// Package templates checks CloudFormation templates in tests, with cfn-lint and checkov, and has the AWS CLI that deploys them. All three are
// installed by scripts/template-tools when a test first needs them; they are tools of the tests and part of nothing that is shipped.
package templates

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

// pins is below the root of the module.
const pins = "internal/awstest/templates/pins"

var installed = sync.OnceValues(pinned.Tools{
	Script: "scripts/template-tools", Files: []string{pins + "/tools.txt", pins + "/checkov.txt"},
}.Install)

// Lint returns what cfn-lint finds in a template, warnings included; empty for nothing.
func Lint(t testing.TB, template string) string {
	t.Helper()
	return run(t, "tools/bin/python", "-c", "import sys; from cfnlint.runner import main; sys.exit(main())", template)
}

// Scan returns what checkov finds in a template; empty for nothing. Checkov asks no service.
func Scan(t testing.TB, template string) string {
	t.Helper()
	return run(t, "checkov/bin/python", "-m", "checkov.main", "--framework", "cloudformation", "--compact", "--quiet", "--skip-download", "--file", template)
}

// CLI is the command line of the AWS CLI, as the beginning of one.
func CLI(t testing.TB) []string {
	t.Helper()
	return []string{filepath.Join(tools(t), "tools/bin/python"), "-m", "awscli"}
}

// run returns what a tool prints if it finds something: it then ends with an error.
func run(t testing.TB, python string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(tools(t), python), args...)
	cmd.Dir = t.TempDir() // Python would also look for modules where the test is
	cmd.Stdout, cmd.Stderr = &out, &out
	var failed *exec.ExitError
	switch err := cmd.Run(); {
	case err == nil:
		return ""
	case !errors.As(err, &failed):
		t.Fatal(err)
	}
	return out.String()
}

// tools is the directory that the installer has made.
func tools(t testing.TB) string {
	t.Helper()
	i, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return i.Dir
}

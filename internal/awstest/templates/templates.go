// Package templates checks CloudFormation templates in tests, with cfn-lint and checkov, and has the AWS CLI that deploys them. All three are
// installed by scripts/template-tools when a test first needs them; they are tools of the tests and part of nothing that is shipped.
package templates

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Below the root of the module: what installs the tools, and which.
const (
	installer = "scripts/template-tools"
	pins      = "internal/awstest/templates/pins"
)

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
	dir, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var installed = sync.OnceValues(func() (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	// Go test notes the files that a test looks at: it must not take a result that came of other tools for one of these.
	for _, file := range []string{installer, pins + "/tools.txt", pins + "/checkov.txt"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return "", err
		}
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(root, installer))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", installer, err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
})

// root is the directory of the module that the test is in.
func root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

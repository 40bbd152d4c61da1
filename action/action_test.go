// Package action_test runs the tests of the Action under the Node.js that GitHub runs it with.
package action_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

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

// TestInputs: action.yml, the sources and the page have the same inputs and outputs.
func TestInputs(t *testing.T) {
	var metadata struct {
		Inputs, Outputs map[string]any
	}
	if err := yaml.Unmarshal(read(t, "action.yml"), &metadata); err != nil {
		t.Fatal(err)
	}
	_, page, _ := bytes.Cut(read(t, "../docs/callers.md"), []byte("### The Action"))
	page, _, _ = bytes.Cut(page, []byte("\n### "))
	inputs, outputs, found := bytes.Cut(page, []byte("| output |"))
	if !found {
		t.Fatal("docs/callers.md has no outputs")
	}
	for what, c := range map[string]struct {
		declared map[string]any
		page     []byte
		code     []byte
		pattern  string
	}{
		"inputs":  {metadata.Inputs, inputs, read(t, "src/inputs.js"), `(?:read\.\w+|input)\('([a-z-]+)'`},
		"outputs": {metadata.Outputs, outputs, read(t, "src/provision.js"), `runner\.output\('([a-z-]+)'`},
	} {
		want := slices.Sorted(maps.Keys(c.declared))
		if d := cmp.Diff(want, names(c.code, c.pattern)); d != "" {
			t.Errorf("%s of the code: %s", what, d)
		}
		var rows []byte
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllSubmatch(c.page, -1) {
			rows = append(rows, row[1]...)
		}
		if d := cmp.Diff(want, names(rows, "`([a-z-]+)`")); d != "" {
			t.Errorf("%s of docs/callers.md: %s", what, d)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// names are what a pattern finds, in order, each once.
func names(text []byte, pattern string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		all = append(all, string(match[1]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

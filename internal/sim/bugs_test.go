package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bugSeeds are the lives in which every planted bug must be caught, and in all
// of which every rule must hold without it.
const bugSeeds = 150

// bugsAtOnce bounds how many programs run beside each other.
const bugsAtOnce = 2

// TestPlantedBugs: each of the mistakes that the design guards against is put
// into the product, by an overlay at build time, and one of the rules that it
// names must catch it: in a simulated life, or in the explored states where
// chance alone would need too many lives. Without them no rule is broken.
func TestPlantedBugs(t *testing.T) {
	root := moduleRoot(t)
	files, err := filepath.Glob("testdata/bugs/*.bug")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d planted bugs, want at least 10: %v", len(files), err)
	}
	var bugs []bug
	for _, file := range files {
		bugs = append(bugs, readBug(t, file))
	}
	sound, bugged := build(t, root, nil), build(t, root, planted(t, root, bugs))
	slots := make(chan struct{}, bugsAtOnce)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		slots <- struct{}{}
		defer func() { <-slots }()
		for _, how := range [][]string{simulated, explored} {
			rule, out := run(t, sound, "", how)
			if rule != "" {
				t.Errorf("without a bug the rule %q is broken:\n%s", rule, out)
			}
			t.Log(out)
		}
	})
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			rule, out := run(t, bugged, b.name, b.how)
			if !slices.Contains(b.caughtBy, rule) {
				t.Errorf("broken rule: %q, want one of %q\n%s", rule, b.caughtBy, out)
			}
		})
	}
}

// How the program looks for broken rules.
var (
	simulated = []string{"-seeds", fmt.Sprint(bugSeeds), "-keep", "30"}
	explored  = []string{"-explore", "small"}
)

// bug is a planted bug: which rules may catch it, how, and what it changes.
type bug struct {
	name     string
	caughtBy []string
	how      []string
	edits    []edit
}

type edit struct{ file, old, new string }

var (
	caughtBy = regexp.MustCompile(`(?m)^(caught by|explored to): (.+)$`)
	editText = regexp.MustCompile(`(?ms)^file: ([^\n]+)\n<<<<\n(.+?)\n====\n(.*?)\n?>>>>$`)
	broken   = regexp.MustCompile(`the rule "([^"]+)" is broken\n.*`)
)

func readBug(t *testing.T, file string) bug {
	t.Helper()
	text := read(t, file)
	b := bug{name: strings.TrimSuffix(filepath.Base(file), ".bug")}
	if m := caughtBy.FindStringSubmatch(text); m != nil {
		b.how, b.caughtBy = simulated, strings.Split(m[2], ", ")
		if m[1] == "explored to" {
			b.how = explored
		}
	}
	for _, m := range editText.FindAllStringSubmatch(text, -1) {
		b.edits = append(b.edits, edit{file: m[1], old: m[2], new: m[3]})
	}
	if len(b.caughtBy) == 0 || len(b.edits) == 0 {
		t.Fatalf("%s: no rule or no edit", file)
	}
	return b
}

// plant returns the contents of the files with the bug in them, by path.
func (b bug) plant(t *testing.T, root string) map[string]string {
	t.Helper()
	planted := map[string]string{}
	for _, e := range b.edits {
		path := filepath.Join(root, e.file)
		text, ok := planted[path]
		if !ok {
			text = read(t, path)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("the bug does not apply any more: %s has %d times, want once:\n%s", e.file, n, e.old)
		}
		planted[path] = strings.Replace(text, e.old, e.new, 1)
	}
	return planted
}

// build builds the simulator with some files replaced.
func build(t *testing.T, root string, planted map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range planted {
		replacement := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		if err := os.WriteFile(replacement, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = replacement
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	config, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", config, "-o", binary, "./internal/sim/cmd/sim")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// run looks for a broken rule, with one of the planted bugs or "", and returns the rule
// with what the program said; "" when all rules held.
func run(t *testing.T, binary, bug string, how []string) (rule, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, how...)
	cmd.Env = append(os.Environ(), bugVariable+"="+bug)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	m := broken.FindStringSubmatch(string(text))
	switch {
	case err == nil:
		return "", string(text)
	case m == nil:
		t.Fatalf("the program failed without a broken rule: %v\n%s", err, text)
	}
	return m[1], string(text)
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("find module: %v", err)
	}
	return strings.TrimSpace(string(out))
}

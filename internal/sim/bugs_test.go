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
	"strconv"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/sim/explore"
	"github.com/remuda-ci/remuda/internal/testrun"
)

const (
	// bugSeeds are the lives in which every rule must hold without a planted bug (TestLives).
	bugSeeds = 200
	// farSeeds are the lives in which a planted bug is looked for when it is not in the one that its file names. A change of the product changes what
	// happens in which life, and the bugs that chance meets seldom are then in others.
	farSeeds = 1500
	// namedSeeds are the lives that a file may name. Of one beyond bugSeeds it is proved on the spot that every rule holds there without the bug.
	namedSeeds = 10_000
)

// bugsAtOnce bounds how many programs run, and bounds are explored, beside each other.
const bugsAtOnce = 2

// TestPlantedBugs: each of the mistakes that the design guards against is put
// into the product, by an overlay at build time, and one of the rules that it
// names must catch it: in a simulated life, in the explored states where
// chance alone would need too many lives, or in both. Without them no rule is broken.
func TestPlantedBugs(t *testing.T) {
	root := moduleRoot(t)
	bugs, files := plantedBugs(t, root)
	bugged := build(t, root, files)
	slots := make(chan struct{}, bugsAtOnce)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		slots <- struct{}{}
		defer func() { <-slots }()
		for _, b := range explore.Small {
			r := explore.Explore(b, 0, nil)
			if r.Violation != nil {
				t.Errorf("%s: without a bug a rule is broken: %v", b.Name, r.Violation)
			}
			t.Logf("%s: %d states, %d edges", b.Name, r.States, r.Edges)
		}
	})
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			for _, s := range b.searches {
				catch(t, bugged, b.name, s)
			}
		})
	}
}

// catch has a search catch a bug.
func catch(t *testing.T, bugged, bug string, s search) {
	t.Helper()
	if s.first != nil {
		if rule, out := run(t, bugged, bug, s.first); slices.Contains(s.caughtBy, rule) {
			blameless(t, bugged, out)
			return
		}
	}
	rule, out := run(t, bugged, bug, s.how)
	if !slices.Contains(s.caughtBy, rule) {
		t.Errorf("broken rule: %q, want one of %q\n%s", rule, s.caughtBy, out)
	}
	blameless(t, bugged, out)
	t.Logf("write %q in %s.bug, which saves time", firstIn(out), bug)
}

// blameless proves that every rule holds in the life in which a bug was caught when the bug is not there, unless TestLives does.
func blameless(t *testing.T, bugged, out string) {
	t.Helper()
	m := life.FindStringSubmatch(out)
	if m == nil {
		return
	}
	if seed, err := strconv.Atoi(m[1]); err != nil || seed <= bugSeeds {
		return
	}
	if rule, out := run(t, bugged, "", []string{"-seed", m[1], "-keep", keptEvents}); rule != "" {
		t.Errorf("without the bug the rule %q is broken in life %s, too:\n%s", rule, m[1], out)
	}
}

// TestPlantedBugsApply: each planted bug finds its place in the code. It is the quick
// half of TestPlantedBugs, for those who move code.
func TestPlantedBugsApply(t *testing.T) {
	plantedBugs(t, moduleRoot(t))
}

// plantedBugs reads all planted bugs, and the files with them planted, by path.
func plantedBugs(t *testing.T, root string) ([]bug, map[string]string) {
	t.Helper()
	names, err := filepath.Glob("testdata/bugs/*.bug")
	if err != nil || len(names) < 80 {
		t.Fatalf("%d planted bugs, want at least 80: %v", len(names), err)
	}
	var bugs []bug
	for _, name := range names {
		bugs = append(bugs, readBug(t, name))
	}
	code, err := readSource(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := planted(code, bugs)
	if err != nil {
		t.Fatal(err)
	}
	return bugs, files
}

// How the program looks for broken rules.
var (
	simulated = []string{"-seeds", fmt.Sprint(farSeeds), "-keep", keptEvents}
	explored  = []string{"-explore", "small"}
)

// keptEvents is how many events of a trace the program shows.
const keptEvents = "30"

// broken is how the program names a broken rule.
var broken = regexp.MustCompile(`the rule "([^"]+)" is broken\n.*`)

// life and bounds are how the program names where a rule is broken.
var (
	life   = regexp.MustCompile(`(?m)^seed (\d+) after `)
	bounds = regexp.MustCompile(`(?m)^([^:\n]+):$`)
)

// firstIn is what a .bug file says of the place in which a rule is broken.
func firstIn(out string) string {
	if m := life.FindStringSubmatch(out); m != nil {
		return "first in life: " + m[1]
	}
	if m := bounds.FindStringSubmatch(out); m != nil {
		return "first in bounds: " + m[1]
	}
	return ""
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
	args := append([]string{"build", "-ldflags=-s -w", "-overlay", config, "-o", binary}, testrun.BuildFlags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./internal/sim/cmd/sim")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), testrun.BuildEnviron...)
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

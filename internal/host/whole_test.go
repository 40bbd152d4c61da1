package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// wholeFiles is how many files the distribution of actions/runner has at least.
const wholeFiles = 12_000

// TestCleanOfAWholeDistribution cleans after a run that changed, deleted and added files of a runner with as many as the real one has.
func TestCleanOfAWholeDistribution(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.layOutWhole()
	b.cleaned(8)
	node := b.path("runner/externals/node20")
	if files, links := countFiles(t, b.path("runner")); files < wholeFiles || links < 12 {
		t.Errorf("the runner has %d files and %d links", files, links)
	}
	npm := filepath.Join(node, "bin/npm")
	target, err := os.Readlink(npm)
	b.check(err)
	b.check(os.Remove(npm))
	b.check(os.Symlink("/bin/sh", npm))
	changed := filepath.Join(node, "lib/node_modules/npm/node_modules/package-007/lib/file-3.js")
	b.check(os.Remove(changed))
	b.check(os.WriteFile(changed, []byte("evil"), 0o644))
	b.check(os.RemoveAll(b.path("runner/externals/node21")))
	b.check(os.WriteFile(filepath.Join(node, "new"), nil, 0o644))

	begun := time.Now()
	b.cleaned(10)
	t.Logf("cleaned in %s", time.Since(begun).Round(time.Millisecond))
	if got, err := os.Readlink(npm); err != nil || got != target {
		t.Errorf("npm leads to %q, want %q (%v)", got, target, err)
	}
	if text, err := os.ReadFile(changed); err != nil || string(text) != "'use strict'\n" {
		t.Errorf("%q (%v)", text, err)
	}
	if files, links := countFiles(t, b.path("runner")); files < wholeFiles || links < 12 {
		t.Errorf("the runner has %d files and %d links", files, links)
	}
	if _, err := os.Stat(filepath.Join(node, "new")); err == nil {
		t.Error("what the run added is left")
	}
}

// layOutWhole replaces the distribution by one of the real size, with the scripts of the bed in it.
func (b *bed) layOutWhole() {
	b.Helper()
	program := filepath.Join(b.TempDir(), "program")
	b.check(os.WriteFile(program, []byte(listenerScript), 0o755))
	b.check(os.RemoveAll(b.options.Distribution))
	b.check(runner.LayOutWhole(b.options.Distribution, program))
	b.write("../distribution/config.sh", configScript, 0o755)
}

func countFiles(t *testing.T, dir string) (files, links int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.Type().IsRegular():
			files++
		case d.Type() == fs.ModeSymlink:
			links++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, links
}

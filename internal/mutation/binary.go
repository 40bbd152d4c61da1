package mutation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/mutation/chosen"
)

// binary is a test binary with all mutants in it.
type binary struct{ path, dir, pkg string }

// test is one test of a binary, and the mutants that it reaches.
type test struct {
	of      *binary
	name    string
	took    time.Duration
	reaches []byte
}

// names are the tests of the binary: its examples and the seeds of its fuzz tests too.
func (b *binary) names(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, b.path, "-test.list", "^(Test|Example|Fuzz)")
	cmd.Dir = b.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", b.pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// rapid has property tests draw the same lives every time, as make test does, and leave it at the first that fails.
var rapid = []string{"RAPID_SEED=1", "RAPID_SHRINKTIME=1ns", "RAPID_NOFAILFILE=true"}

// failed is the line by which a test says so, and with -test.v a part of it too. The run is over then.
var failed = []byte("--- FAIL")

// watcher ends a run once a test has failed, so that the tests beside it are not waited for.
type watcher struct {
	end  func()
	said bytes.Buffer
}

func (w *watcher) Write(p []byte) (int, error) {
	w.said.Write(p)
	if bytes.Contains(w.said.Bytes(), failed) {
		w.end()
	}
	return len(p), nil
}

// run runs tests of the binary, and says whether all passed within the time.
func (b *binary) run(ctx context.Context, names []string, limit time.Duration, scratch string, environ ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	temporary, err := os.MkdirTemp(scratch, "run")
	if err != nil {
		return false
	}
	defer os.RemoveAll(temporary)
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	cmd := exec.CommandContext(ctx, b.path, "-test.run", "^("+strings.Join(quoted, "|")+")$", "-test.failfast", "-test.v", "-test.timeout", "0")
	cmd.Dir = b.dir
	cmd.Env = slices.Concat(os.Environ(), rapid, []string{"TMPDIR=" + temporary}, environ)
	w := &watcher{end: cancel}
	cmd.Stdout, cmd.Stderr = w, w
	// The programs that a test has started end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}

// runPlain runs one test without a mutant, and notes which mutants it reaches.
func (b *binary) runPlain(ctx context.Context, name string, mutants int, scratch string) (test, bool) {
	const limit = 5 * time.Minute
	f, err := os.CreateTemp(scratch, "reached")
	if err != nil {
		return test{}, false
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Truncate(int64(mutants)); err != nil {
		return test{}, false
	}
	begin := time.Now()
	none := chosen.Variable + "=" + strconv.Itoa(mutants)
	if !b.run(ctx, []string{name}, limit, scratch, none, chosen.ReachedVariable+"="+f.Name()) {
		return test{}, false
	}
	took := time.Since(begin)
	reaches, err := os.ReadFile(f.Name())
	return test{of: b, name: name, took: took, reaches: reaches}, err == nil
}

// survives says whether a mutant fails none of the tests, which are in order. It runs the quick ones first.
func (o Options) survives(ctx context.Context, m Mutant, tests []test, scratch string) bool {
	for _, batch := range batches(tests) {
		var took time.Duration
		var names []string
		for _, t := range batch {
			took += t.took
			names = append(names, t.name)
		}
		// Tests of a busy machine take longer. One that takes this long has lost its end.
		limit := 5*took + cmp.Or(o.Patience, 5*time.Second)
		if !batch[0].of.run(ctx, names, limit, scratch, chosen.Variable+"="+strconv.Itoa(m.ID)) {
			return false
		}
	}
	return true
}

// batches are runs of tests of one binary: the first is short, and each may take four times as long as the one before.
func batches(tests []test) [][]test {
	var all [][]test
	var current []test
	var took time.Duration
	limit := 500 * time.Millisecond
	for _, t := range tests {
		if len(current) > 0 && (t.of != current[0].of || took+t.took > limit) {
			all = append(all, current)
			if t.of == current[0].of {
				limit *= 4
			}
			current, took = nil, 0
		}
		current, took = append(current, t), took+t.took
	}
	if len(current) > 0 {
		all = append(all, current)
	}
	return all
}

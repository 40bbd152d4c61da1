package githubsim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/githubsim/webhook"
)

func TestFullDiskIsToldAndLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	good := s.journal.File
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	s.mu.Lock()
	s.journal.File = full
	s.mu.Unlock()
	err = s.change(func() error { s.put(state.KindHook, 0, webhook.Hook{Target: "http://kept"}); return nil })
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	s.journal.File = good
	s.mu.Unlock()
	if err := errors.Join(s.change(func() error { return nil }), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := savedRows(t, dir); !strings.Contains(got["hook0"], "http://kept") {
		t.Errorf("%v", got)
	}
}

func TestNewIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no directory": "", "a file in the way": file} {
		if _, err := New(Options{StateDir: dir}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOldRunsAreForgotten(t *testing.T) {
	s, err := New(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.maxRuns = 5
	for id := int64(1); id <= 6; id++ {
		err := s.change(func() error {
			r, err := s.startRun("a/b", id, "on: push\njobs:\n  j: {runs-on: x, steps: [{run: x}]}\n", state.Origin{})
			if err == nil && id != 1 { // the first one is not completed and stays
				err = s.cancelRun(r)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(s.runs) != 5 || len(s.jobs) != 5 || s.runs[1] == nil || s.runs[2] != nil || s.runs[3] == nil {
		t.Errorf("%d runs, %d jobs; 1: %v, 2: %v, 3: %v", len(s.runs), len(s.jobs), s.runs[1] != nil, s.runs[2] != nil, s.runs[3] != nil)
	}
}

// TestChecksOfOldRunsAreForgotten: check runs stay as long as some run of their commit does.
func TestChecksOfOldRunsAreForgotten(t *testing.T) {
	s, err := New(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit := func(id int64, sha string) *state.Run {
		r := &state.Run{ID: id, Repository: "a/b", Origin: state.Origin{SHA: sha}}
		s.runs[id] = r
		s.checks = append(s.checks, &payload.Check{ID: id, Repository: "A/b", HeadSHA: sha})
		return r
	}
	first, second, other := commit(1, "aa"), commit(2, "aa"), commit(3, "bb")
	for _, step := range []struct {
		r    *state.Run
		left int
	}{{first, 3}, {second, 1}, {other, 0}} {
		if s.forget(step.r); len(s.checks) != step.left {
			t.Errorf("without run %d there are %d check runs, want %d", step.r.ID, len(s.checks), step.left)
		}
	}
}

// savedRows returns the rows in the journal of a state directory.
func savedRows(t *testing.T, dir string) map[string]string {
	t.Helper()
	j, rows, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	out := map[string]string{}
	for k, v := range rows {
		out[k.Kind+k.ID] = string(v)
	}
	return out
}

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// foreignJobs are jobs of another run that name this one's label. All that GitHub's runner runs after a hook that failed is in
// them, and writes to LOOT.
const foreignJobs = `
on: push
env: {BASH_ENV: LOOT/env}
jobs:
  steps:
    runs-on: "6001"
    steps:
      - uses: standin/pre-post@v1
        if: always()
        with: {pre: touch LOOT/pre, main: touch LOOT/main, post: touch LOOT/post}
      - {if: always(), run: touch LOOT/always}
      - {if: failure(), run: touch LOOT/failure}
      - {if: '!cancelled()', run: touch LOOT/not-cancelled}
      - run: touch LOOT/plain
  container:
    runs-on: "6001"
    container: alpine
    steps:
      - uses: standin/pre-post@v1
        with: {pre: touch LOOT/pre-of-container}
      - {if: always(), run: touch LOOT/always-of-container}
`

// cancelWhileRefused cancels a foreign run while the hook waits to end its worker. A cancel lets steps with always() run.
func (s *stage) cancelWhileRefused(runID, workflow string) {
	s.Helper()
	if _, err := s.GitHub.StartRun(s.ctx, repository, runID, workflow); err != nil {
		s.Fatal(err)
	}
	s.eventually(func() string {
		run, err := s.GitHub.Run(s.ctx, runID)
		for _, j := range run.Jobs {
			if strings.Contains(j.Log, "remuda: refused") {
				return ""
			}
		}
		return fmt.Sprintf("no job is refused (%v): %v", err, run.Jobs)
	})
	if err := s.GitHub.Cancel(s.ctx, runID); err != nil {
		s.Fatal(err)
	}
	if run, err := s.GitHub.WaitRun(s.ctx, runID, nil); err != nil || run.Conclusion == "success" {
		s.Errorf("the canceled run came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
}

// TestNothingOfARefusedJobRuns has jobs of another run come to a host. They fail with the hook's message, nothing of them runs, and
// the run that the host serves goes on.
func TestNothingOfARefusedJobRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.mustProvision("6001", "a", 1)
	loot := t.TempDir()
	if _, err := s.GitHub.StartRun(s.ctx, repository, "6666", strings.ReplaceAll(foreignJobs, "LOOT", loot)); err != nil {
		t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, "6666", nil)
	if err != nil || run.Conclusion != "failure" {
		t.Fatalf("the foreign run came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
	for _, j := range run.Jobs {
		// In the log, and as the reason of the failure.
		if strings.Count(j.Log, "remuda: refused. This is a job of run 6666") != 2 || !strings.Contains(j.Log, "##[error]remuda: refused") || j.Conclusion != "failure" {
			t.Errorf("%s: %s:\n%s", j.Name, j.Conclusion, j.Log)
		}
	}
	taken, err := filepath.Glob(loot + "/*")
	if err != nil || len(taken) > 0 {
		t.Errorf("of the refused jobs ran %v (%v)", taken, err)
	}
	s.cancelWhileRefused("6667", strings.ReplaceAll(foreignJobs, "LOOT", loot))
	if taken, err := filepath.Glob(loot + "/*"); err != nil || len(taken) > 0 {
		t.Errorf("of the canceled jobs ran %v (%v)", taken, err)
	}
	mark := filepath.Join(loot, "own")
	if _, err := s.GitHub.StartRun(s.ctx, repository, "6001", workflow("touch "+mark)); err != nil {
		t.Fatal(err)
	}
	if run, err := s.GitHub.WaitRun(s.ctx, "6001", nil); err != nil || run.Conclusion != "success" {
		t.Errorf("its own run came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}

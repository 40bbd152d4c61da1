package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestReleaseWhileAJobRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.mustProvision("5001", "a", 1)
	mark := filepath.Join(t.TempDir(), "go")
	if _, err := s.GitHub.StartRun(s.ctx, repository, "5001", workflow("until [ -e "+mark+" ]; do sleep 0.05; done\ntouch leftover\necho finished")); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() string { return s.jobIs("5001", "in_progress") })
	s.busy() // or the job, which is taken before there is a worker, may come after the release
	s.release("5001", false)
	s.eventually(func() string {
		if i := s.only(); i.GetState() != remudav1.State_STATE_IDLE || !i.GetBusy() {
			return "the host is " + i.GetState().String()
		}
		return ""
	})
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, "5001", nil)
	if err != nil || run.Conclusion != "success" || !strings.Contains(run.Jobs[0].Log, "finished") {
		t.Fatalf("the job came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
	s.eventually(func() string {
		if i := s.only(); i.GetPooledTime() == nil {
			return "after its job the host is " + i.GetState().String() + ": " + i.GetReason()
		}
		return ""
	})
	warm := s.mustProvision("5002", "b", 1)
	if warm.GetReusedCount() != 1 {
		t.Fatalf("the next run got a new host")
	}
	if _, err := s.GitHub.StartRun(s.ctx, repository, "5002", workflow("ls -A; test ! -e leftover")); err != nil {
		t.Fatal(err)
	}
	if run, err := s.GitHub.WaitRun(s.ctx, "5002", nil); err != nil || run.Conclusion != "success" {
		t.Errorf("the next run found what the first left: %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
}

func TestAJobOfAnotherRunIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.mustProvision("6001", "a", 1)
	foreign := strings.ReplaceAll(workflow("echo stolen > "+filepath.Join(t.TempDir(), "loot")), `"${{ github.run_id }}"`, `"6001"`)
	if _, err := s.GitHub.StartRun(s.ctx, repository, "6666", foreign); err != nil {
		t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, "6666", nil)
	if err != nil || run.Conclusion != "failure" {
		t.Fatalf("the foreign run came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
	if log := run.Jobs[0].Log; strings.Contains(log, "stolen") {
		t.Errorf("a step of the foreign job ran:\n%s", log)
	}
	if got := s.release("6001", true); got.GetPooledCount() != 0 || got.GetFailedCount() != 1 {
		t.Errorf("pooled %d, ended %d: a host that met a foreign job must not be reused", got.GetPooledCount(), got.GetFailedCount())
	}
}

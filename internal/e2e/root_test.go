package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestANewRootVolume: the host that served a run has nothing of it on its disk before the next one, which is of another repository and gets the host,
// since its agent is a new one that has prepared it.
func TestANewRootVolume(t *testing.T) {
	t.Parallel()
	s := newStage(t, "pools: {default: {reset: root-volume}}\nsweeps: {due: 1s}\n")
	host := s.mustProvision("8101", "a", 1).GetInstances()[0].GetInstanceId()
	if _, err := s.GitHub.StartRun(s.ctx, repository, "8101", workflow("echo first")); err != nil {
		t.Fatal(err)
	}
	if run, err := s.GitHub.WaitRun(s.ctx, "8101", nil); err != nil || run.Conclusion != "success" {
		t.Fatalf("the job came out as %q (%v)", run.Conclusion, err)
	}
	trace := filepath.Join(s.dir, "hosts", host, "trace") // of a job that the clean-up does not know of
	if err := os.WriteFile(trace, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.release("8101", true)
	s.eventually(func() string {
		h := s.only()
		if h.GetPooledTime() == nil || h.GetResetTime() != nil || h.GetInstanceId() != host {
			return fmt.Sprintf("host %s is %s: %s", h.GetInstanceId(), h.GetState(), h.GetReason())
		}
		return ""
	})
	if _, err := os.Lstat(trace); !os.IsNotExist(err) {
		t.Errorf("the new root volume has what a job left on the old one (%v)", err)
	}
	got, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{Repository: "acme/app", RunId: "8102", RequestId: "b"})
	if err != nil || got.GetReusedCount() != 1 || got.GetInstances()[0].GetInstanceId() != host {
		t.Fatalf("the run of another repository got %v, %v; want host %s", got.GetInstances(), err, host)
	}
}

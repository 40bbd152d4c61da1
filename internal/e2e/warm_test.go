package e2e_test

import (
	"fmt"
	"testing"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestTheFirstRunClaimsAFreshHost: no run has used the host that waits, and the
// first run of a repository gets it instead of a cold start.
func TestTheFirstRunClaimsAFreshHost(t *testing.T) {
	t.Parallel()
	s := newStage(t, "pools: {default: {maximum: 3, warm: {minimum_idle: 1}}}\nsweeps: {warm: 1s}\n")
	fresh := func(n int32) func() string {
		return func() string {
			p := s.pool("default")
			if p.GetFreshCount() != n || p.GetWantedFreshCount() != 1 || p.GetMaximum() != 3 {
				return fmt.Sprintf("the pool has %d fresh hosts, wants %d, at most %d", p.GetFreshCount(), p.GetWantedFreshCount(), p.GetMaximum())
			}
			return ""
		}
	}
	s.eventually(fresh(1))
	host := s.only()
	if host.GetRepository() != "" || host.GetRunId() != "" || host.GetAssignment() != 1 {
		t.Errorf("the fresh host is of %q, run %q, assignment %d", host.GetRepository(), host.GetRunId(), host.GetAssignment())
	}
	got := s.mustProvision("8001", "a", 1)
	if got.GetReusedCount() != 1 || got.GetInstances()[0].GetInstanceId() != host.GetInstanceId() {
		t.Fatalf("the first run got %v (%d reused), want the fresh host %s", got.GetInstances(), got.GetReusedCount(), host.GetInstanceId())
	}
	if _, err := s.GitHub.StartRun(s.ctx, repository, "8001", workflow("echo first")); err != nil {
		t.Fatal(err)
	}
	if run, err := s.GitHub.WaitRun(s.ctx, "8001", nil); err != nil || run.Conclusion != "success" {
		t.Fatalf("the job came out as %q (%v)", run.Conclusion, err)
	}
	s.eventually(fresh(1)) // another one in its place
	if pooled := s.release("8001", true).GetPooledCount(); pooled != 1 {
		t.Errorf("%d hosts pooled", pooled)
	}
	again := s.mustProvision("8002", "b", 1)
	if again.GetInstances()[0].GetInstanceId() != host.GetInstanceId() {
		t.Errorf("the next run of the repository did not get its own host %s before a fresh one", host.GetInstanceId())
	}
}

// pool is one of the configured pools.
func (s *stage) pool(name string) *remudav1.Pool {
	s.Helper()
	got, err := s.Fleet.ListPools(s.ctx, &remudav1.ListPoolsRequest{})
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range got.GetPools() {
		if p.GetName() == name {
			return p
		}
	}
	s.Fatalf("no pool %s: %v", name, got.GetPools())
	return nil
}

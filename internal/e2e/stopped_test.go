package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/local"
)

// TestAStoppedHostServesAgain: a host that waits for its idle time is stopped, with all of its processes, and the next run has it started in place of a launch.
func TestAStoppedHostServesAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "pools: {default: {idle_time: 3s, stopped: {maximum: 1}}}\ntimeouts: {claim_margin: 1s}\nsweeps: {due: 500ms}\n")
	host := s.mustProvision("8301", "a", 1).GetInstances()[0].GetInstanceId()
	s.succeeds("8301", "echo first")
	s.release("8301", true)
	s.stopped(host)
	got := s.mustProvision("8302", "b", 1)
	if got.GetReusedCount() != 1 || got.GetInstances()[0].GetInstanceId() != host || got.GetInstances()[0].GetStopTime() != nil {
		t.Fatalf("the next run got %v (%d reused), want the stopped host %s", got.GetInstances(), got.GetReusedCount(), host)
	}
	s.succeeds("8302", "echo second")
}

// TestAFreshStoppedHost: a pool with a minimum has a host stopped that no run has used, and the first run has it started.
func TestAFreshStoppedHost(t *testing.T) {
	t.Parallel()
	s := newStage(t, "pools: {default: {stopped: {maximum: 1, minimum: 1}}}\nsweeps: {due: 500ms, warm: 1s}\n")
	s.eventually(func() string {
		if p := s.pool("default"); p.GetFreshStoppedCount() != 1 || p.GetWantedFreshStoppedCount() != 1 {
			return fmt.Sprintf("%d fresh hosts are stopped, and %d are wanted", p.GetFreshStoppedCount(), p.GetWantedFreshStoppedCount())
		}
		return ""
	})
	host := s.only().GetInstanceId()
	s.stopped(host)
	got := s.mustProvision("8401", "a", 1)
	if got.GetReusedCount() != 1 || got.GetInstances()[0].GetInstanceId() != host {
		t.Fatalf("the run got %v (%d reused), want the stopped host %s", got.GetInstances(), got.GetReusedCount(), host)
	}
	s.succeeds("8401", "echo first")
}

// stopped waits until controld has seen that the machine of a host is stopped. Then no process of the host is left.
func (s *stage) stopped(host string) {
	s.Helper()
	s.eventually(func() string {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, "instance="+host+" ") && strings.Contains(line, "code="+string(lifecycle.ReasonMachineStopped)) {
				return ""
			}
		}
		return "host " + host + " is not stopped"
	})
	if left, err := local.Processes(filepath.Join(s.dir, "hosts", host)); err != nil || len(left) > 0 {
		s.Errorf("processes of a stopped host: %v, %v", left, err)
	}
}

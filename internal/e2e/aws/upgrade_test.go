//go:build upgrade

package aws_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestUpgradeOnDynamoDB goes from one version to the next and back, on the tables, queues and machines of one account. At each
// change controld is killed and one of the other version takes its rows, its messages and its living hosts.
func TestUpgradeOnDynamoDB(t *testing.T) {
	t.Parallel()
	old, current := testrun.Older.Dir(t), testrun.System.Dir(t)
	for name, versions := range map[string][2]string{
		"an upgrade and a rollback":  {old, current},
		"a downgrade and an upgrade": {current, old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageOf(t, versions[0])
			s.refresh()
			s.servesARun("9001", 1, 0)
			s.becomes(versions[1])
			s.servesARun("9002", 1, 1) // the host of the first version
			s.servesARun("9003", 2, 1) // and one of this version
			for _, dir := range versions {
				s.hasAgentOf(dir)
			}
			s.becomes(versions[0])
			s.servesARun("9004", 2, 2)
			if n := s.living(); n != 2 {
				t.Errorf("%d hosts live, want the two that were launched", n)
			}
		})
	}
}

// refresh makes the tables and queues, or what this version adds.
func (s *stage) refresh() {
	s.Helper()
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(s.TB, err)
}

// becomes kills controld and starts that of another directory on the same account. Machines boot the agentd beside it from
// then on.
func (s *stage) becomes(programs string) {
	s.Helper()
	s.controld.kill()
	s.programs = programs
	s.machines.mu.Lock()
	s.machines.programs = programs
	s.machines.mu.Unlock()
	s.startControld()
	s.refresh()
}

// servesARun provisions hosts, so many of them from the pool, runs a job and gives all of them back to the pool.
func (s *stage) servesARun(runID string, hosts, reused int32) {
	s.Helper()
	if got := s.provision(ask(runID, hosts)); got.GetReusedCount() != reused {
		s.Errorf("run %s: %d hosts of %d are used again, want %d", runID, got.GetReusedCount(), hosts, reused)
	}
	s.work(runID, "echo "+runID)
	if got := s.release(runID); got.GetPooledCount() != hosts {
		s.Errorf("after run %s: %v, want %d hosts pooled", runID, got, hosts)
	}
}

// hasAgentOf fails the test if no agent is a program of the directory.
func (s *stage) hasAgentOf(programs string) {
	s.Helper()
	s.machines.mu.Lock()
	defer s.machines.mu.Unlock()
	for _, m := range s.machines.booted {
		if strings.HasPrefix(m.cmd.Path, programs+"/") {
			return
		}
	}
	s.Errorf("no machine runs an agentd of %s", programs)
}

//go:build upgrade

package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestUpgrade goes from one version to the next and back, on one store. At each change controld is killed and one of the
// other version takes its rows and its living hosts.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	old, current := testrun.Older.Dir(t), bin(t)
	for name, versions := range map[string][2]string{
		"an upgrade and a rollback":  {old, current},
		"a downgrade and an upgrade": {current, old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageOf(t, versions[0], "")
			s.servesARun("9001", 1, 0)
			s.becomes(versions[1])
			s.servesARun("9002", 1, 1) // the host of the first version
			s.servesARun("9003", 2, 1) // and one of this version
			for _, dir := range versions {
				s.hasAgentOf(dir)
			}
			s.becomes(versions[0])
			s.servesARun("9004", 2, 2)
			s.noneFailed()
		})
	}
}

// TestUpgradeInTheMiddleOfAJob replaces controld while a job runs on an agent of the other version.
func TestUpgradeInTheMiddleOfAJob(t *testing.T) {
	t.Parallel()
	old, current := testrun.Older.Dir(t), bin(t)
	for name, versions := range map[string][2]string{
		"upgrade":  {old, current},
		"rollback": {current, old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageOf(t, versions[0], "")
			s.mustProvision("9101", "a", 1)
			mark := filepath.Join(t.TempDir(), "go")
			if _, err := s.GitHub.StartRun(s.ctx, repository, "9101", workflow("until [ -e "+mark+" ]; do sleep 0.05; done")); err != nil {
				t.Fatal(err)
			}
			s.eventually(func() string { return s.jobIs("9101", "in_progress") })
			s.busy()
			s.becomes(versions[1])
			s.release("9101", false)
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if run, err := s.GitHub.WaitRun(s.ctx, "9101", nil); err != nil || run.Conclusion != "success" {
				t.Fatalf("the job came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
			}
			s.eventually(func() string {
				if i := s.only(); i.GetPooledTime() == nil {
					return "after its job the host is " + i.GetState().String() + ": " + i.GetReason()
				}
				return ""
			})
			s.noneFailed()
		})
	}
}

// becomes kills controld and starts that of another directory on the same store.
func (s *stage) becomes(programs string) {
	s.Helper()
	s.Kill()
	s.bin = programs
	s.start()
	s.runsVersion()
}

// servesARun provisions hosts, so many of them from the pool, runs a job and gives all of them back to the pool.
func (s *stage) servesARun(runID string, hosts, reused int32) {
	s.Helper()
	if got := s.mustProvision(runID, runID, hosts); got.GetReusedCount() != reused {
		s.Errorf("run %s: %d hosts of %d are used again, want %d", runID, got.GetReusedCount(), hosts, reused)
	}
	s.succeeds(runID, "echo "+runID)
	if released := s.release(runID, true); released.GetPooledCount() != hosts {
		s.Errorf("after run %s: %v, want %d hosts pooled", runID, released, hosts)
	}
}

// hasAgentOf fails the test if no agent is a program of the directory.
func (s *stage) hasAgentOf(programs string) {
	s.Helper()
	all, err := local.Processes(s.dir)
	if err != nil || !slices.ContainsFunc(all, func(p local.Process) bool { return strings.HasPrefix(p.Command, filepath.Join(programs, "agentd")+" ") }) {
		s.Errorf("no agent of %s runs (%v): %v", programs, err, all)
	}
}

// noneFailed fails the test if any host has ended.
func (s *stage) noneFailed() {
	s.Helper()
	got, err := s.Fleet.ListInstances(s.ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{remudav1.State_STATE_TERMINATED}})
	if err != nil || len(got.GetInstances()) > 0 {
		s.Errorf("hosts ended (%v): %v", err, got.GetInstances())
	}
}

// newStageOf is newStage with the programs of a directory.
func newStageOf(t *testing.T, programs, config string) *stage {
	t.Helper()
	return newStageWith(t, programs, filepath.Join(t.TempDir(), "state"), config)
}

// runsVersion checks the metric of the build: controld is of the version that the test means.
func (s *stage) runsVersion() {
	s.Helper()
	want := "dev"
	if s.bin != bin(s.T) {
		want = "before"
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+s.HTTPAddr+"/metrics", nil)
	if err != nil {
		s.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(metrics), `version="`+want+`"`) {
		s.Errorf("controld is not of version %s (%v)", want, err)
	}
}

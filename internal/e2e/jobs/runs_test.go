package jobs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestARunThatIsCancelledIsReleasedByWebhookAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stage func(*testing.T) *stage
		lost  bool
	}{
		"that comes":                 {func(t *testing.T) *stage { return newStage(t, "") }, false},
		"that is lost and asked for": {func(t *testing.T) *stage { return newServed(t, 1, "sweeps:\n  cloud: 2s\n") }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := test.stage(t)
			s.provision("2001", 2)
			s.run("2001", workflow(2, onRun, s.gates(2).step()))
			s.eventually(func() string { return s.busy(2) })
			if test.lost {
				s.deliver(local.Webhooks{LoseEvery: 1})
			}
			if err := s.GitHub.Cancel(s.ctx, "2001"); err != nil {
				t.Fatal(err)
			}
			s.releasedByWebhook("2001", "2")
			if run, err := s.GitHub.Run(s.ctx, "2001"); err != nil || run.Conclusion != "cancelled" {
				t.Errorf("the run came out as %q (%v)", run.Conclusion, err)
			}
			s.atRest()
			if recovered := s.log.count("webhook recovered"); test.lost != (recovered > 0) {
				t.Errorf("%d webhooks were asked for", recovered)
			}
			if again := s.provision("2002", 2); again.GetReusedCount() != 2 {
				t.Errorf("the next run was given %d hosts of the first, want 2", again.GetReusedCount())
			}
		})
	}
}

// busy reports whether so many hosts are busy.
func (s *stage) busy(want int) string {
	s.Helper()
	busy := 0
	for _, i := range s.hosts(remudav1.State_STATE_RUNNING) {
		if i.GetBusy() {
			busy++
		}
	}
	if busy != want {
		return fmt.Sprintf("%d hosts are busy, want %d", busy, want)
	}
	return ""
}

// releasedByWebhook waits until the end of a run has released so many hosts, a
// pattern.
func (s *stage) releasedByWebhook(runID, hosts string) {
	s.Helper()
	want := fmt.Sprintf("^run %s is over: released %s hosts?$", runID, hosts)
	s.eventually(func() string {
		if s.log.results(want) == 0 {
			return "no webhook had the result " + want
		}
		return ""
	})
}

func TestAReRunOfFailedJobsGetsHostsAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	mended := filepath.Join(t.TempDir(), "mended")
	s.provision("3001", 2)
	s.run("3001", workflow(2, onRun, `test "${{ matrix.n }}" = 0 || test -e `+mended))
	s.releasedByWebhook("3001", "2")
	if run, err := s.GitHub.Run(s.ctx, "3001"); err != nil || run.Conclusion != "failure" {
		t.Fatalf("the run came out as %q (%v), and so nothing is to be run again", run.Conclusion, err)
	}
	s.atRest()
	if err := os.WriteFile(mended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.GitHub.RerunFailed(s.ctx, "3001"); err != nil {
		t.Fatal(err)
	}
	s.succeeds(nil, "3001")
	s.releasedByWebhook("3001", "1")
	s.atRest()
	if n := s.log.results(`are gone: requested again$`); n != 1 {
		t.Errorf("%d hosts were asked for again, want 1", n)
	}
	if n := len(s.hosts()); n != 2 {
		t.Errorf("%d hosts in all, want the 2 that were asked for", n)
	}
}

func TestARunIsProvisionedByItsRule(t *testing.T) {
	t.Parallel()
	s := newServed(t, 1, `callers:
  audience: https://remuda.test
  issuer: `+standinURL+`
  repositories:
    - repository_id: `+repositoryID+`
      repository: acme/shop
      max_hosts: 2
      webhook: true
`)
	labels := onRun + ", remuda-large"
	if _, err := s.GitHub.StartRun(s.ctx, "acme/other", "4002", workflow(1, labels, "'true'")); err != nil {
		t.Fatal(err)
	}
	s.run("4001", workflow(5, labels, "'true'"))
	s.succeeds(nil, "4001")
	s.releasedByWebhook("4001", `\d+`)
	s.atRest()
	if s.log.results(`: provisioned by its rule$`) == 0 {
		t.Error("nothing was asked for by the rule")
	}
	s.charged("4001", 1)
	// The other repository has no rule: its webhooks are about nothing of ours.
	other, err := s.GitHub.Run(s.ctx, "4002")
	if err != nil || other.Status != "queued" {
		t.Errorf("the run without a rule is %s: %v", other.Status, err)
	}
	if n := len(s.hosts()); n < 1 || n > 2 {
		t.Errorf("%d hosts in all, want 1 or 2", n)
	}
}

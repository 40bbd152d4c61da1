package jobs_test

import (
	"fmt"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
)

// TestLostAndRepeatedWebhooks: every third webhook is lost and every
// fourth comes twice, and every job still runs once.
func TestLostAndRepeatedWebhooks(t *testing.T) {
	t.Parallel()
	const jobs, maximum = 30, 5
	s := newServed(t, 1, fmt.Sprintf(jobPool, maximum)+"sweeps:\n  cloud: 2s\n  due: 1s\n")
	s.deliver(local.Webhooks{LoseEvery: 3, RepeatEvery: 4})
	run := s.run("5001", workflow(jobs, onPool, "'true'"))
	most := 0
	census := func() { most = max(most, len(s.live())) }
	s.succeeds(census, "5001")
	s.allOver(ids(run))
	s.deliver(local.Webhooks{})
	s.spare(maximum, "5002", census)
	s.atRest()
	s.nothingOpen()
	if ever := len(s.hosts()); most > maximum || ever > maximum {
		t.Errorf("%d hosts at once and %d in all, want at most %d", most, ever, maximum)
	}
	if s.log.count("webhook recovered") == 0 {
		t.Error("no webhook was recovered, so none was lost")
	}
	if given := len(s.log.moves("give")); given < jobs {
		t.Errorf("%d turns were given for %d jobs", given, jobs)
	}
}

// allOver waits until controld knows that these jobs are over. It gives no turn for
// them then.
func (s *stage) allOver(jobs []int64) {
	s.Helper()
	s.eventually(func() string {
		if missing := lacking(jobs, s.log.heard(heardOver)); len(missing) > 0 {
			return fmt.Sprintf("jobs are not known to be over: %v", missing)
		}
		return ""
	})
}

// spare runs a job for each host of the pool. A turn that was given while the start of
// a job was unknown has a host without a job, which waits two minutes for one. It gets
// one of these.
func (s *stage) spare(hosts int, runID string, between func()) {
	s.Helper()
	s.run(runID, workflow(hosts, onPool, "'true'"))
	s.succeeds(between, runID)
}

package jobs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
)

// The job of a fork gets no host of a pool that takes none. GitHub gives it the host that was launched for another
// job, since it waits longer: nothing of it runs there, and the other job gets the next host at once.
func TestJobsOfForksRunNothing(t *testing.T) {
	t.Parallel()
	s := newServed(t, 1, fmt.Sprintf(jobPool, 1))
	loot := filepath.Join(t.TempDir(), "loot")
	always := fmt.Sprintf("'echo stolen >>%s'\n        if: always()", loot)
	stranger := local.Origin{Event: "pull_request", HeadRepository: "stranger/shop"}
	if _, err := s.GitHub.StartRunFrom(s.ctx, repository, "5201", workflow(1, onPool, always), stranger); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() string {
		if s.log.results("is of a fork") == 0 {
			return "the webhook of the fork's job is not handled"
		}
		return ""
	})
	if hosts := s.hosts(); len(hosts) != 0 {
		t.Errorf("the fork's job got a host: %v", hosts)
	}
	s.run("5202", workflow(1, onPool, "'true'"))
	s.succeeds(nil, "5202")

	run, err := s.GitHub.Run(s.ctx, "5201")
	if err != nil {
		t.Fatal(err)
	}
	if j := run.Jobs[0]; j.Conclusion != "failure" || !strings.Contains(j.Log, "This job is of a fork") {
		t.Errorf("the fork's job on %q came out as %q:\n%s", j.Runner, j.Conclusion, j.Log)
	}
	if data, err := os.ReadFile(loot); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a step of the fork's job ran: %q (%v)", data, err)
	}
	s.run("5203", workflow(1, onPool, "'true'"))
	s.succeeds(nil, "5203")
	s.atRest()
	if n := len(s.hosts()); n != 1 {
		t.Errorf("%d hosts were launched, want 1: the host that refused a job is used again", n)
	}
}

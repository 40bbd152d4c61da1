package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The minimum of a pool waits clean and without a registration, which GitHub would remove after minutes. A job gets one of
// these hosts, and another takes its place.
func TestTheMinimumWaitsWithoutARegistration(t *testing.T) {
	t.Parallel()
	const pool = "pools:\n  small-jobs:\n    jobs:\n      labels: [remuda-small]\n      minimum: %d\n      maximum: 3\n      repositories: [\"acme/*\"]\nsweeps:\n  warm: 1s\n"
	s := newServed(t, 1, fmt.Sprintf(pool, 2))
	s.replaces = true
	var waiting []string
	wait := func() {
		t.Helper()
		s.eventually(func() string {
			waiting = nil
			for _, i := range s.live() {
				if i.GetPooledTime() != nil && i.GetRepository() == "" {
					waiting = append(waiting, i.GetInstanceId())
				}
			}
			if len(waiting) != 2 {
				return fmt.Sprintf("hosts that wait: %v, want 2", waiting)
			}
			return s.listening(0)
		})
	}
	wait()
	s.run("5301", workflow(1, onPool, "'true'"))
	s.succeeds(nil, "5301")
	run, err := s.GitHub.Run(s.ctx, "5301")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(waiting, func(id string) bool { return strings.HasSuffix(run.Jobs[0].Runner, id) }) {
		t.Errorf("the job ran on %s, and %v waited for it", run.Jobs[0].Runner, waiting)
	}
	wait()
	s.charged("5301", 1)
	if registered := s.log.count("slot moved"); registered > 2 {
		t.Errorf("%d moves of slots for one job, want its assignment and its end", registered)
	}
}

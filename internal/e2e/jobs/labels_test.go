package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Two fleets share an organization, and each has a runner that waits: one a host of its job pool, one a host of a
// run. Jobs of others that name the default labels alone, which GitHub gives to any runner that has them, stay in
// the queue: of another repository, and of a fork.
func TestJobsOfDefaultLabelsComeToNoHost(t *testing.T) {
	t.Parallel()
	const pools = "  scope: organisation\npools:\n  small-jobs:\n    reuse: none\n    jobs:\n      labels: [%s]\n      minimum: %d\n      registered_minimum: true\n      maximum: 2\n      repositories: [acme/shop]\n"
	a, github := newServedBeside(t, 1, fmt.Sprintf(pools, onPool, 1))
	a.replaces = true
	b := emptyStage(t)
	b.serve(github, []int64{2}, fmt.Sprintf(pools, "remuda-other", 0))
	b.provision("5001", 1)
	a.eventually(func() string { return a.listening(2) })

	foreign := []string{"5101", "5102", "5103"}
	for i, labels := range []string{"self-hosted, linux, x64", "self-hosted", "x64"} {
		a.from("acme/other", foreign[i], labels, local.Origin{})
	}
	a.from(repository, "5104", "self-hosted, linux", local.Origin{Event: "pull_request", HeadRepository: "stranger/shop"})
	a.from(repository, "5105", "linux, "+onPool, local.Origin{})

	// Both runners take the jobs that are theirs, the next after those that they might have taken.
	a.run("5002", workflow(1, onPool, "'true'"))
	a.run("5001", workflow(1, onRun, "'true'"))
	a.succeeds(nil, "5002", "5001")
	if d := a.jobOn("5002", a); d != "" {
		t.Error(d)
	}
	if d := a.jobOn("5001", b); d != "" {
		t.Error(d)
	}
	a.eventually(func() string {
		return a.refusedBecause("5105", "runs-on names the label linux, which the hosts of pool small-jobs do not have: remove it from runs-on")
	})
	for _, id := range append(foreign, "5104", "5105") {
		run, err := a.GitHub.Run(a.ctx, id)
		if err != nil || run.Status != "queued" || run.Jobs[0].Status != "queued" || run.Jobs[0].Runner != "" {
			t.Errorf("run %s, which is none of ours: %+v (%v)", id, run, err)
		}
	}
}

// from starts a run of one job.
func (s *stage) from(repository, runID, labels string, origin local.Origin) {
	s.Helper()
	if _, err := s.GitHub.StartRunFrom(s.ctx, repository, runID, workflow(1, labels, "'true'"), origin); err != nil {
		s.Fatal(err)
	}
}

// refusedBecause complains if the explanation of the only job of a run, asked for by what is in its URL, does not say that the job gets no host and why.
func (s *stage) refusedBecause(runID, why string) string {
	s.Helper()
	run, err := s.GitHub.Run(s.ctx, runID)
	if err != nil {
		return err.Error()
	}
	job := run.Jobs[0]
	resp, err := s.Fleet.ExplainRun(s.ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: runID, JobId: job.ID})
	if err != nil {
		return err.Error()
	}
	if want := fmt.Sprintf("Job %d %q gets no host: %s", job.ID, job.Name, why); !strings.HasPrefix(resp.GetSentences()[0], want) {
		return fmt.Sprintf("the explanation is %q, want %q", resp.GetSentences(), want)
	}
	return ""
}

// listening says how many runners wait for a job if these are not as many as wanted.
func (s *stage) listening(want int) string {
	runners, err := s.GitHub.Runners(s.ctx)
	if err != nil {
		return err.Error()
	}
	n := 0
	for _, r := range runners {
		if r.Status == "online" && !r.Busy {
			n++
		}
	}
	if n != want {
		return fmt.Sprintf("%d runners listen, want %d: %+v", n, want, runners)
	}
	return ""
}

// jobOn complains if the only job of a run did not run on a host of the other stage.
func (s *stage) jobOn(runID string, other *stage) string {
	s.Helper()
	run, err := s.GitHub.Run(s.ctx, runID)
	if err != nil {
		return err.Error()
	}
	for _, i := range other.hosts() {
		if strings.HasSuffix(run.Jobs[0].Runner, i.GetInstanceId()) {
			return ""
		}
	}
	return fmt.Sprintf("the job of run %s ran on %s, which is no host of its fleet", runID, run.Jobs[0].Runner)
}

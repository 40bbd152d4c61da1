package jobs_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// arrivalConfig has a pool of one host, and a limit of two.
const arrivalConfig = `pools:
  small: {jobs: {labels: [small], maximum: 1, repositories: ["acme/*"]}}
  paused: {jobs: {labels: [paused], maximum: 1, repositories: ["acme/*"]}}
limits: {hosts_per_repository: 2}
`

// TestAJobsLogSaysHowItsHostCame: the log of a job that has waited says for what, though that is over, when the job was queued, why the host is
// cold, and which run of its repository had the host before.
func TestAJobsLogSaysHowItsHostCame(t *testing.T) {
	t.Parallel()
	s := newStage(t, arrivalConfig)

	// A full pool.
	g := s.gates(1)
	s.run("6201", workflow(1, "small", g.step()))
	s.eventually(func() string { return s.runIs("6201", "in_progress") })
	s.run("6202", workflow(1, "small", "'true'"))
	s.eventually(func() string { return s.waitsWith("6202", string(lifecycle.ReasonPoolFull)) })
	g.open(0)

	// A pause.
	if _, err := s.Fleet.PausePool(s.ctx, &remudav1.PausePoolRequest{Pool: "paused"}); err != nil {
		t.Fatal(err)
	}
	s.run("6203", workflow(1, "paused", "'true'"))
	s.eventually(func() string { return s.waitsWith("6203", string(lifecycle.ReasonPoolPaused)) })
	if _, err := s.Fleet.ResumePool(s.ctx, &remudav1.ResumePoolRequest{Pool: "paused"}); err != nil {
		t.Fatal(err)
	}

	// A limit, and a host that another run of the repository gives back.
	limited := func(run string, count int32) error {
		_, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{
			Repository: "acme/limited", RunId: run, InstanceCount: proto.Int32(count), Timeout: durationpb.New(5 * time.Minute),
		})
		return err
	}
	if err := limited("6204", 2); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- limited("6205", 1) }()
	s.eventually(func() string { return s.waitsWith("6205", string(lifecycle.ReasonQuota)) })
	if _, err := s.GitHub.StartRun(s.ctx, "acme/limited", "6205", workflow(1, `"6205"`, "'true'")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: "acme/limited", RunId: "6204"}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}

	s.succeeds(nil, "6201", "6202", "6203", "6205")
	const clock = `\d\d:\d\d:\d\dZ`
	for run, want := range map[string][]string{
		"6201": {
			`The job that it was asked for was queued at ` + clock + `\. GitHub may have given it another one\.`,
			`Asked for at ` + clock + `, [\d.ms]+ after that, and launched at ` + clock,
			`It was launched for a job, since pool small had no idle host left\.`,
			`Nothing has run on it before\.`,
		},
		"6202": {
			`What kept it \(pool_full\): pool small has 1 of 1 host, its maximum, and it is at work\.`,
			`It waited, clean, in pool small\.`,
			`One run was on it before(: run 6201 of acme/shop)?, and it was reset after that\.`, // not named if its webhook came late
		},
		"6203": {`What kept it \(pool_paused\): pool paused was paused from `},
		"6205": {
			`What kept it \(quota\): limits\.hosts_per_repository allows acme/limited 2 hosts at once, and none is left: run 6204 has 2\.`,
			`It began to register before it was claimed, so the claim only set its labels\.`,
			`One run was on it before: run 6204 of acme/limited, and it was reset after that\.`,
		},
	} {
		log := s.logOf(run)
		for _, line := range want {
			if !regexp.MustCompile(line).MatchString(log) {
				t.Errorf("the log of run %s lacks %q:\n%s", run, line, log)
			}
		}
		if kept := strings.Contains(log, "What kept it"); kept == (run == "6201") {
			t.Errorf("the log of run %s says what kept it: %t:\n%s", run, kept, log)
		}
	}
}

// logOf is the log of the only job of a run.
func (s *stage) logOf(runID string) string {
	s.Helper()
	run, err := s.GitHub.Run(s.ctx, runID)
	if err != nil || len(run.Jobs) != 1 {
		s.Fatalf("run %s: %+v, %v", runID, run, err)
	}
	return run.Jobs[0].Log
}

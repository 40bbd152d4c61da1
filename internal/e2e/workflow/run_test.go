package workflow_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestExample: the workflow gets itself hosts by the Action, and its jobs run on them. Its own last job gives them back, or the end of the
// run. Each run gets the same ones.
func TestExample(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	s.hireMachines(anyTools)
	s.start("1101", s.withAction()+s.releaseJob())
	s.succeeds("1101")
	hosts := s.pooled(2)
	first := s.run("1101")
	if d := cmp.Diff([]string{"hosts: success", "test (1): success", "test (2): success", "release: success"}, conclusions(first)); d != "" {
		t.Errorf("jobs: %s", d)
	}
	ran := []string{hostOf(first.Jobs[1]), hostOf(first.Jobs[2])}
	slices.Sort(ran)
	if d := cmp.Diff(hosts, ran); d != "" {
		t.Errorf("the jobs did not run on the hosts: %s", d)
	}
	if d := cmp.Diff([]string{"Provision OK", "Release OK"}, s.calls("1101")); d != "" {
		t.Errorf("calls of the run: %s", d)
	}

	s.hear() // from now on the end of a run is enough
	s.start("1102", s.withAction())
	s.succeeds("1102")
	second := s.run("1102")
	if log := second.Jobs[0].Log; !strings.Contains(log, "(2 from the pool, 0 launched)") {
		t.Errorf("the second run got other hosts:\n%s", log)
	}
	s.heardTheEndOf("1102")
	if d := cmp.Diff(hosts, s.pooled(2)); d != "" {
		t.Errorf("after the second run: %s", d)
	}
	if d := cmp.Diff([]string{"Provision OK"}, s.calls("1102")); d != "" {
		t.Errorf("calls of the second run: %s", d)
	}

	alone, _, _ := strings.Cut(strings.Replace(s.withAction(), "hosts: 2", "hosts: 2, mode: job", 1), "  test:\n")
	s.start("1103", alone)
	s.succeeds("1103")
	third := s.run("1103")
	if log := third.Jobs[0].Log; !strings.Contains(log, "Run 1103 has given back 2 hosts") {
		t.Errorf("the end of the job says:\n%s", log)
	}
	s.pooled(2)
	s.noTokenIsIn(s.log.String() + logs(first) + logs(second) + logs(third))
}

// TestCanceledAction: the runner ends the step that waits, and then it runs the end of the job. Both have the step's tokens.
func TestCanceledAction(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	s.hireMachines(anyTools)
	if _, err := s.admin.PausePool(s.ctx, &remudav1.PausePoolRequest{Pool: "default", Reason: "the racks are being moved"}); err != nil {
		t.Fatal(err)
	}
	s.start("1201", s.withAction())
	s.eventually(func() string {
		if log := s.run("1201").Jobs[0].Log; !strings.Contains(log, "pool default is paused") {
			return "the log does not say why: " + log
		}
		return ""
	})
	if err := s.github.Cancel(s.ctx, "1201"); err != nil {
		t.Fatal(err)
	}
	run, err := s.github.WaitRun(s.ctx, "1201", nil)
	if err != nil || run.Conclusion != "cancelled" {
		t.Fatalf("the run came out as %q: %v", run.Conclusion, err)
	}
	log := run.Jobs[0].Log
	if !strings.Contains(log, "Run 1201 has given back 0 hosts") || strings.Count(log, "Waiting for 2 hosts") != 1 {
		t.Errorf("the canceled step and the end of its job say:\n%s", log)
	}
	if got := s.calls("1201"); strings.Count(strings.Join(got, ","), "Release OK") != 1 {
		t.Errorf("calls of the run: %v", got)
	}
	s.noTokenIsIn(logs(run))
}

// TestExampleWithoutAction: the same by grpcurl.
func TestExampleWithoutAction(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	s.hireMachines(anyTools)
	s.start("1001", s.example())
	s.succeeds("1001")
	hosts := s.pooled(2)
	run := s.run("1001")
	for i, name := range []string{"hosts", "test (1)", "test (2)", "release"} {
		if run.Jobs[i].Name != name {
			t.Fatalf("job %d is %s", i, run.Jobs[i].Name)
		}
	}
	ran := []string{hostOf(run.Jobs[1]), hostOf(run.Jobs[2])}
	slices.Sort(ran)
	if d := cmp.Diff(hosts, ran); d != "" {
		t.Errorf("the jobs did not run on the hosts: %s", d)
	}
	want := []string{"Provision OK", "Release OK"}
	if d := cmp.Diff(want, s.calls("1001")); d != "" {
		t.Errorf("calls of the run: %s", d)
	}

	s.hear() // and now with both ways to release
	s.start("1002", s.example())
	s.succeeds("1002")
	if log := s.run("1002").Jobs[0].Log; !strings.Contains(log, `"reusedCount": 2`) {
		t.Errorf("the second run got other hosts:\n%s", log)
	}
	s.heardTheEndOf("1002")
	if d := cmp.Diff(hosts, s.pooled(2)); d != "" {
		t.Errorf("after the second run: %s", d)
	}
	s.noTokenIsIn(s.log.String() + logs(run) + logs(s.run("1002")))
}

// TestCancelledRunIsReleasedByWebhook: no workflow calls Release for it.
func TestCancelledRunIsReleasedByWebhook(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	s.hireMachines(ourTools)
	s.hear()
	s.start("2001", withoutRelease(t, s.testing("echo begun\nexec sleep 3600")))
	s.eventually(func() string {
		for _, i := range s.hosts() {
			if !i.GetBusy() {
				return "host " + i.GetInstanceId() + " is not busy"
			}
		}
		for _, j := range s.run("2001").Jobs[1:] {
			if !strings.Contains(j.Log, "begun") {
				return j.Name + " has not begun"
			}
		}
		return ""
	})
	if err := s.github.Cancel(s.ctx, "2001"); err != nil {
		t.Fatal(err)
	}
	run, err := s.github.WaitRun(s.ctx, "2001", nil)
	if err != nil || run.Conclusion != "cancelled" {
		t.Fatalf("the run came out as %q: %v", run.Conclusion, err)
	}
	if hosts := s.pooled(2); !slices.Contains(hosts, hostOf(run.Jobs[1])) || !slices.Contains(hosts, hostOf(run.Jobs[2])) {
		t.Errorf("the jobs ran on %q and %q, pooled are %v", run.Jobs[1].Runner, run.Jobs[2].Runner, hosts)
	}
	s.heardTheEndOf("2001")
	if d := cmp.Diff([]string{"Provision OK"}, s.calls("2001")); d != "" {
		t.Errorf("calls of the run: %s", d)
	}
}

// TestRerunOfFailedJobsGetsHostsAgain: the job that provisions has succeeded and
// is not run again, and the hosts were given back.
func TestRerunOfFailedJobsGetsHostsAgain(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	s.hireMachines(ourTools)
	s.hear()
	s.start("3001", s.testing(`echo "attempt $GITHUB_RUN_ATTEMPT"`+"\n"+`test "${{ matrix.shard }}" = 1 || test "$GITHUB_RUN_ATTEMPT" = 2`))
	first, err := s.github.WaitRun(s.ctx, "3001", nil)
	want := []string{"hosts: success", "test (1): success", "test (2): failure", "release: success"}
	if d := cmp.Diff(want, conclusions(first)); d != "" || err != nil {
		t.Fatalf("the first attempt: %v %s\n%s", err, d, logs(first))
	}
	s.pooled(2)
	s.heardTheEndOf("3001")
	if err := s.github.RerunFailed(s.ctx, "3001"); err != nil {
		t.Fatal(err)
	}
	s.succeeds("3001")
	second := s.run("3001")
	if !strings.Contains(second.Jobs[2].Log, "attempt 2") {
		t.Errorf("the second attempt of the test says:\n%s", second.Jobs[2].Log)
	}
	for i, again := range []bool{false, false, true, true} { // a job that runs again has a new id, as on GitHub
		if (second.Jobs[i].ID != first.Jobs[i].ID) != again {
			t.Errorf("job %s ran again: %v", second.Jobs[i].Name, !again)
		}
	}
	s.pooled(2)
	// The second one is of the second attempt.
	if d := cmp.Diff([]string{"Provision OK", "Release OK", "Release OK"}, s.calls("3001")); d != "" {
		t.Errorf("calls of the run: %s", d)
	}
}

func (s *stage) start(runID, workflow string) {
	s.Helper()
	if _, err := s.github.StartRun(s.ctx, repository, runID, workflow); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) run(runID string) local.Run {
	s.Helper()
	run, err := s.github.Run(s.ctx, runID)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func (s *stage) succeeds(runID string) {
	s.Helper()
	run, err := s.github.WaitRun(s.ctx, runID, nil)
	if err != nil || run.Conclusion != "success" {
		s.Fatalf("run %s came out as %q: %v\n%s", runID, run.Conclusion, err, logs(run))
	}
}

func conclusions(run local.Run) []string {
	var list []string
	for _, j := range run.Jobs {
		list = append(list, j.Name+": "+j.Conclusion)
	}
	return list
}

func logs(run local.Run) string {
	var all strings.Builder
	for _, j := range run.Jobs {
		fmt.Fprintf(&all, "--- %s on %q: %s %s\n%s\n", j.Name, j.Runner, j.Status, j.Conclusion, j.Log)
	}
	return all.String()
}

// hostOf is the host of a job, by the name of its runner.
func hostOf(j local.Job) string {
	if at := strings.Index(j.Runner, "i-"); at >= 0 {
		return j.Runner[at:]
	}
	return j.Runner
}

// pooled waits until there are n hosts, all of them in the pool, and no
// registration of theirs is left. It returns their ids in order.
func (s *stage) pooled(n int) []string {
	s.Helper()
	var ids []string
	s.eventually(func() string {
		ids = nil
		for _, i := range s.hosts() {
			if i.GetState() != remudav1.State_STATE_IDLE || i.GetPooledTime() == nil || i.GetRunId() != "" {
				return fmt.Sprintf("host %s is %s: %s", i.GetInstanceId(), i.GetState(), i.GetReason())
			}
			ids = append(ids, i.GetInstanceId())
		}
		if len(ids) != n {
			return fmt.Sprintf("%d hosts", len(ids))
		}
		runners, err := s.github.Runners(s.ctx)
		if err != nil {
			return err.Error()
		}
		for _, r := range runners {
			if strings.HasPrefix(r.Name, "remuda-") && !r.StandsBy() {
				return "registration " + r.Name + " is left"
			}
		}
		return ""
	})
	slices.Sort(ids)
	return ids
}

// calls are the calls that a run's workflow made at controld, with their answers, by
// controld's log.
func (s *stage) calls(runID string) []string {
	var list []string
	for line := range strings.Lines(s.log.String()) {
		var e struct {
			Message string `json:"@message"`
			Method  string `json:"method"`
			Code    string `json:"code"`
			Run     string `json:"run"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Message == "rpc finished" && e.Run == runID {
			list = append(list, path.Base(e.Method)+" "+e.Code)
		}
	}
	return list
}

// heardTheEndOf waits until controld has done what the end of a run asks for.
func (s *stage) heardTheEndOf(runID string) {
	s.Helper()
	s.eventually(func() string {
		if !strings.Contains(s.log.String(), "run "+runID+" is over: released ") {
			return "controld has not heard of the end of run " + runID
		}
		return ""
	})
}

// noTokenIsIn a text of the daemons or of a step.
func (s *stage) noTokenIsIn(text string) {
	s.Helper()
	if at := strings.Index(text, "eyJ"); at >= 0 { // as each JSON web token begins
		s.Errorf("there is a token in it: %.80s", text[at:])
	}
}

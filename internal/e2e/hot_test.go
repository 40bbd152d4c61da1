package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const listening = "pools: {default: {standby: listening, idle_time: 1h}}\n"

// hot waits until a host is hot.
func (s *stage) hot(host string) {
	s.Helper()
	s.eventuallyIs(host, "hot", (*remudav1.Instance).GetHot)
}

// eventuallyIs waits until something holds for a host.
func (s *stage) eventuallyIs(host, what string, holds func(*remudav1.Instance) bool) {
	s.Helper()
	s.eventually(func() string {
		got, err := s.Fleet.GetInstance(s.ctx, &remudav1.GetInstanceRequest{InstanceId: host})
		if err != nil || !holds(got.GetInstance()) {
			return fmt.Sprintf("the host is not %s (%v): %v", what, err, got)
		}
		return ""
	})
}

func isIn(state remudav1.State) func(*remudav1.Instance) bool {
	return func(i *remudav1.Instance) bool { return i.GetState() == state }
}

// runner is the one registration.
func (s *stage) runner() local.Runner {
	s.Helper()
	list, err := s.GitHub.Runners(s.ctx)
	if err != nil || len(list) != 1 {
		s.Fatalf("runners %v (%v), want one", list, err)
	}
	return list[0]
}

// succeeds runs a workflow, and returns the runner of its one job.
func (s *stage) succeeds(runID, script string) string {
	s.Helper()
	if _, err := s.GitHub.StartRun(s.ctx, repository, runID, workflow(script)); err != nil {
		s.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, runID, nil)
	if err != nil || run.Conclusion != "success" {
		s.Fatalf("run %s came out as %q (%v): %v", runID, run.Conclusion, err, run.Jobs)
	}
	return run.Jobs[0].Runner
}

// TestAHotHostServesRunAfterRun: a claim takes the runner that listens, its job may come before the agent knows of the claim, and each
// run has a registration of its own.
func TestAHotHostServesRunAfterRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, listening)
	host := s.mustProvision("9001", "first", 1).GetInstances()[0].GetInstanceId()
	s.succeeds("9001", "echo cold")
	s.release("9001", true)
	before := ""
	for n := range 3 {
		run := fmt.Sprint(9010 + n)
		s.hot(host)
		waits := s.runner()
		if len(waits.Labels) != 1 || !strings.HasPrefix(waits.Labels[0], "remuda-standby-") || waits.Name == before {
			t.Fatalf("it waits as %+v, after %s", waits, before)
		}
		if _, err := s.GitHub.StartRun(s.ctx, repository, run, workflow("echo hot")); err != nil { // its job waits for the labels
			t.Fatal(err)
		}
		if got := s.mustProvision(run, run, 1); got.GetReusedCount() != 1 || got.GetInstances()[0].GetInstanceId() != host {
			t.Fatalf("run %s got %v", run, got)
		}
		got, err := s.GitHub.WaitRun(s.ctx, run, nil)
		if err != nil || got.Conclusion != "success" || got.Jobs[0].Runner != waits.Name {
			t.Fatalf("run %s came out as %q (%v) on %v, want %s", run, got.Conclusion, err, got.Jobs, waits.Name)
		}
		s.release(run, true)
		before = waits.Name
	}
}

// TestAHotHostThatNoRunHasClaimed has jobs come that name its label. They are refused, nothing of them runs, and the host serves no further run.
func TestAHotHostThatNoRunHasClaimed(t *testing.T) {
	t.Parallel()
	s := newStage(t, listening+"sweeps: {liveness: 2s}\n")
	host := s.mustProvision("9101", "first", 1).GetInstances()[0].GetInstanceId()
	s.release("9101", true)
	s.hot(host)
	loot := t.TempDir()
	steps, _, _ := strings.Cut(foreignJobs, "  container:")
	attack := strings.NewReplacer("LOOT", loot, `"6001"`, s.runner().Labels[0]).Replace(steps)
	if _, err := s.GitHub.StartRun(s.ctx, repository, "9666", attack); err != nil {
		t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, "9666", nil)
	if err != nil || run.Conclusion != "failure" {
		t.Fatalf("the foreign run came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
	}
	for _, j := range run.Jobs {
		if !strings.Contains(j.Log, "remuda: refused. This is a job of run 9666") {
			t.Errorf("%s: %s:\n%s", j.Name, j.Conclusion, j.Log)
		}
	}
	s.eventuallyIs(host, "terminated", isIn(remudav1.State_STATE_TERMINATED))
	if taken, err := filepath.Glob(loot + "/*"); err != nil || len(taken) > 0 {
		t.Errorf("of the refused jobs ran %v (%v)", taken, err)
	}
}

// TestARegistrationThatIsGone has the runner of a hot host deleted on GitHub just before a run claims it. The host registers for the
// run within the request.
func TestARegistrationThatIsGone(t *testing.T) {
	t.Parallel()
	s := newStage(t, listening)
	host := s.mustProvision("9201", "first", 1).GetInstances()[0].GetInstanceId()
	s.release("9201", true)
	s.hot(host)
	gone := s.runner()
	if err := s.GitHub.DeleteRunner(s.ctx, repository, gone.ID); err != nil {
		t.Fatal(err)
	}
	got := s.mustProvision("9202", "q", 1)
	if id := got.GetInstances()[0].GetInstanceId(); got.GetReusedCount() == 1 && id != host {
		t.Errorf("got %v", got)
	}
	if name := s.succeeds("9202", "echo registered"); name == gone.Name {
		t.Errorf("the job ran on %s, which is gone", name)
	}
}

// TestKillControldBetweenClaimAndLabels: another controld sets the labels, and the job of the run starts.
func TestKillControldBetweenClaimAndLabels(t *testing.T) {
	t.Parallel()
	s := newStage(t, listening)
	host := s.mustProvision("9301", "first", 1).GetInstances()[0].GetInstanceId()
	s.release("9301", true)
	s.hot(host)
	waits := s.runner()
	if err := s.GitHub.Delay(s.ctx, "PUT /repos/{owner}/{repo}/actions/runners/{id}/labels", time.Minute); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := s.provision("9302", "q", 1)
		failed <- err
	}()
	s.eventuallyIs(host, "claimed", isIn(remudav1.State_STATE_CLAIMED))
	s.crash()
	if err := <-failed; err == nil {
		t.Error("the killed controld answered")
	}
	s.mustProvision("9302", "q", 1)
	if name := s.succeeds("9302", "echo labeled"); name != waits.Name {
		t.Errorf("the job ran on %s, want %s", name, waits.Name)
	}
}

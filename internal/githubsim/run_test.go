package githubsim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const matrixWorkflow = `
on: push
jobs:
  build:
    runs-on: [self-hosted, "${{ github.run_id }}"]
    strategy:
      matrix:
        n: [1, 2, 3]
    steps:
      - run: echo "shard ${{ matrix.n }} of run $GITHUB_RUN_ID on $RUNNER_NAME"
  report:
    needs: build
    runs-on: "${{ github.run_id }}"
    steps:
      - run: echo all done
`

func TestMatrixAndNeedsOnThreeHosts(t *testing.T) {
	s := start(t)
	var listeners []*listener
	for _, name := range []string{"a", "b", "c"} {
		_, l := s.online(name, "4711")
		listeners = append(listeners, l)
	}
	s.call(201, "POST", "/_standin/runs", map[string]any{"repository": "acme/app", "run_id": 4711, "workflow": matrixWorkflow}, nil)
	v := s.completed(4711)
	want := map[string]string{"build (1)": "success", "build (2)": "success", "build (3)": "success", "report": "success"}
	if d := cmp.Diff(want, v.conclusions()); d != "" {
		t.Error(d)
	}
	used := map[string]bool{}
	for _, j := range v.Jobs[:3] {
		used[*j.Runner] = true
		if !strings.Contains(j.Log, "of run 4711 on "+*j.Runner) {
			t.Errorf("log of %s: %s", j.Name, j.Log)
		}
		if v.Jobs[3].StartedAt.Before(*j.CompletedAt) {
			t.Error("report began before what it needs was done")
		}
	}
	if len(used) != 3 {
		t.Errorf("the three jobs ran on %v", used)
	}
	for _, l := range listeners {
		l.awaitOutput("completed with result: Succeeded")
	}
}

func TestFailingJobSkipsWhatNeedsIt(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	id := s.startRun(`
on: push
jobs:
  first: {runs-on: box, steps: [{run: echo before; false; echo after}, {run: echo never}]}
  second: {needs: first, runs-on: box, steps: [{run: 'true'}]}
  third: {needs: [second], runs-on: box, steps: [{run: 'true'}]}
  other: {runs-on: box, steps: [{run: 'true'}]}
`)
	v := s.completed(id)
	want := map[string]string{"first": "failure", "second": "skipped", "third": "skipped", "other": "success"}
	if d := cmp.Diff(want, v.conclusions()); d != "" || *v.Conclusion != "failure" {
		t.Errorf("run %s: %s", *v.Conclusion, d)
	}
	log := v.Jobs[0].Log
	if !strings.Contains(log, "before\n##[error]Process completed with exit code 1.") || strings.Contains(log, "\nafter") || strings.Contains(log, "\nnever") {
		t.Error(log)
	}
}

func TestFailFastCancelsTheRestOfTheMatrix(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	workflow := `
on: push
jobs:
  j:
    runs-on: box
    strategy: {fail-fast: FAILFAST, matrix: {n: [1, 2, 3]}}
    steps: [{run: 'test ${{ matrix.n }} != 1'}]
`
	for failFast, want := range map[string]map[string]string{
		"true":  {"j (1)": "failure", "j (2)": "cancelled", "j (3)": "cancelled"},
		"false": {"j (1)": "failure", "j (2)": "success", "j (3)": "success"},
	} {
		v := s.completed(s.startRun(strings.Replace(workflow, "FAILFAST", failFast, 1)))
		if d := cmp.Diff(want, v.conclusions()); d != "" || *v.Conclusion != "failure" {
			t.Errorf("fail-fast %s: run %s: %s", failFast, *v.Conclusion, d)
		}
	}
}

func TestMaxParallelHoldsJobsBack(t *testing.T) {
	s := start(t)
	id := s.startRun("on: push\njobs:\n  j:\n    runs-on: box\n    strategy: {max-parallel: 2, matrix: {n: [1, 2, 3]}}\n    steps: [{run: 'true'}]\n")
	want := map[string]string{"j (1)": "queued", "j (2)": "queued", "j (3)": "pending"}
	if d := cmp.Diff(want, s.run(id).conclusions()); d != "" {
		t.Error(d)
	}
	s.online("a", "box")
	if v := s.completed(id); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
}

func TestJobWaitsForARunnerWithItsLabelsAndScope(t *testing.T) {
	s := start(t)
	s.online("a", "blue,big")
	waiting := map[string]int64{}
	for _, labels := range []string{"green", "[blue, green]", "[self-hosted, windows]"} {
		waiting[labels] = s.startRun("on: push\njobs:\n  j: {runs-on: " + labels + ", steps: [{run: 'true'}]}\n")
	}
	var foreign runView
	s.call(201, "POST", "/_standin/runs", map[string]any{"repository": "acme/other", "workflow": "on: push\njobs:\n  j: {runs-on: blue, steps: [{run: 'true'}]}\n"}, &foreign)
	matching := s.startRun("on: push\njobs:\n  j: {runs-on: [Self-Hosted, LINUX, x64, Blue], steps: [{run: 'true'}]}\n")
	if v := s.completed(matching); *v.Conclusion != "success" {
		t.Errorf("matching labels: %+v", v)
	}
	waiting["blue, of another repository"] = foreign.ID
	for what, id := range waiting {
		if v := s.run(id); v.Status != "queued" || v.Jobs[0].Status != "queued" || v.Jobs[0].Runner != nil {
			t.Errorf("%s: %+v", what, v)
		}
	}
}

// A job that names none but the default labels goes to any runner that registered with them, whatever that runner is for.
func TestJobOfDefaultLabelsAlone(t *testing.T) {
	s := start(t)
	own := s.newHost("own")
	own.configure("blue", "--no-default-labels")
	own.listen().awaitOutput("Listening for Jobs")
	job := func(labels string) int64 {
		return s.startRun("on: push\njobs:\n  j: {runs-on: " + labels + ", steps: [{run: 'true'}]}\n")
	}
	defaults := []int64{job("[self-hosted, linux, x64]"), job("self-hosted"), job("x64")}
	both := job("[self-hosted, blue]")
	if v := s.completed(job("blue")); *v.Conclusion != "success" {
		t.Errorf("its own label: %+v", v)
	}
	for _, id := range append(defaults, both) {
		if v := s.run(id); v.Jobs[0].Status != "queued" || v.Jobs[0].Runner != nil {
			t.Errorf("beside a runner without default labels: %+v", v)
		}
	}
	if d := cmp.Diff([]string{"blue"}, s.runners()[0].Labels); d != "" {
		t.Error(d)
	}
	s.online("other", "green")
	for _, id := range defaults {
		if v := s.completed(id); *v.Conclusion != "success" || *v.Jobs[0].Runner != "other" {
			t.Errorf("beside a runner with default labels: %+v", v)
		}
	}
	if v := s.run(both); v.Jobs[0].Status != "queued" {
		t.Errorf("its labels are on no runner together: %+v", v)
	}
}

// GitHub matches jobs by the labels that it has itself, so a runner that listens takes jobs of a label that it was given since.
func TestJobOfALabelThatWasSet(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.configure("waits", "--no-default-labels")
	h.listen().awaitOutput("Listening for Jobs")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: run-7, steps: [{run: 'true'}]}\n")
	s.call(200, "PUT", fmt.Sprintf("/repos/acme/app/actions/runners/%d/labels", s.runners()[0].ID), map[string]any{"labels": []string{"run-7"}}, nil)
	if v := s.completed(id); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
	other := s.startRun("on: push\njobs:\n  j: {runs-on: waits, steps: [{run: 'true'}]}\n")
	if v := s.run(other); v.Jobs[0].Status != "queued" || v.Jobs[0].Runner != nil {
		t.Errorf("of the label before: %+v", v)
	}
}

func TestCancelStopsARunningJob(t *testing.T) {
	s := start(t)
	_, l := s.online("a", "box")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'echo up; sleep 1000'}, {run: echo never}]}\n  k: {needs: j, runs-on: box, steps: [{run: 'true'}]}\n")
	s.awaitLog(id, "up\n")
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
	v := s.completed(id)
	if d := cmp.Diff(map[string]string{"j": "cancelled", "k": "cancelled"}, v.conclusions()); d != "" || *v.Conclusion != "cancelled" {
		t.Errorf("run %s: %s", *v.Conclusion, d)
	}
	if log := v.Jobs[0].Log; !strings.Contains(log, "##[error]The operation was canceled.") || strings.Contains(log, "\nnever") {
		t.Error(log)
	}
	l.awaitOutput("Job j completed with result: Canceled")
	s.call(409, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
}

func TestAlwaysRunsWhateverBecameOfTheRun(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	const workflow = `
on: push
jobs:
  first: {runs-on: box, steps: [{run: 'FIRST'}]}
  second: {needs: first, runs-on: box, steps: [{run: 'true'}]}
  last: {needs: [first, second], if: always(), runs-on: box, steps: [{run: 'true'}]}
`
	failed := s.completed(s.startRun(strings.Replace(workflow, "FIRST", "false", 1)))
	want := map[string]string{"first": "failure", "second": "skipped", "last": "success"}
	if d := cmp.Diff(want, failed.conclusions()); d != "" || *failed.Conclusion != "failure" {
		t.Errorf("run %s: %s", *failed.Conclusion, d)
	}
	if failed.Jobs[2].StartedAt.Before(*failed.Jobs[0].CompletedAt) {
		t.Error("last began before what it needs was done")
	}
	id := s.startRun(strings.Replace(workflow, "FIRST", "echo up; sleep 1000", 1))
	s.awaitLog(id, "up\n")
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
	cancelled := s.completed(id)
	want = map[string]string{"first": "cancelled", "second": "cancelled", "last": "success"}
	if d := cmp.Diff(want, cancelled.conclusions()); d != "" || *cancelled.Conclusion != "cancelled" {
		t.Errorf("run %s: %s", *cancelled.Conclusion, d)
	}
}

func TestRerunFailedOnly(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	id := s.startRun(`
on: push
jobs:
  good: {runs-on: box, steps: [{run: 'true'}]}
  flaky: {runs-on: box, steps: [{run: 'test "$GITHUB_RUN_ATTEMPT" -gt 1 && echo attempt ${{ github.run_attempt }}'}]}
  after: {needs: flaky, runs-on: box, steps: [{run: 'true'}]}
`)
	first := s.completed(id)
	s.call(201, "POST", fmt.Sprintf("/_standin/runs/%d/rerun", id), map[string]any{"failed_only": true}, nil)
	second := s.completed(id)
	if d := cmp.Diff(map[string]string{"good": "success", "flaky": "success", "after": "success"}, second.conclusions()); d != "" || second.RunAttempt != 2 {
		t.Errorf("attempt %d: %s", second.RunAttempt, d)
	}
	if second.Jobs[0].ID != first.Jobs[0].ID || second.Jobs[1].ID == first.Jobs[1].ID || second.Jobs[2].ID == first.Jobs[2].ID {
		t.Errorf("jobs before %+v, after %+v", first.Jobs, second.Jobs)
	}
	if !strings.Contains(second.Jobs[1].Log, "attempt 2\n") {
		t.Error(second.Jobs[1].Log)
	}
	s.call(403, "POST", fmt.Sprintf("/_standin/runs/%d/rerun", id), map[string]any{"failed_only": true}, nil)
}

func TestEnvironmentOfAJob(t *testing.T) {
	s := start(t)
	h, _ := s.online("a", "box", "FROM_HOST=yes")
	id := s.startRun(`
on: push
env: {A: workflow, B: workflow, C: workflow}
jobs:
  j:
    runs-on: box
    env: {B: job, C: job}
    steps:
      - id: tell
        env: {C: step, D: '${{ env.B }}-${{ github.repository_owner }}'}
        run: echo "1 $A $B $C $D $FROM_HOST $GITHUB_REPOSITORY $GITHUB_RUN_ATTEMPT $GITHUB_JOB $GITHUB_ACTION $PWD"
      - run: |
          echo "A=file" >> "$GITHUB_ENV"
          printf 'LONG<<END\nx\ny\nEND\n' >> "$GITHUB_ENV"
          mkdir bin; printf '#!/bin/sh\necho tool\n' > bin/tool; chmod +x bin/tool; echo "$PWD/bin" >> "$GITHUB_PATH"
      - run: echo "2 $A $C ${{ env.A }} $LONG $(tool)"
      - shell: bash
        run: echo "3 $ACTIONS_RUNNER_INPUT_TOKEN." "$(false | true; echo piped)"
        working-directory: bin
      - name: pipefail
        shell: bash
        run: false | true
`)
	v := s.completed(id)
	log := v.Jobs[0].Log
	for _, want := range []string{
		"\n1 workflow job step job-acme yes acme/app 1 j tell " + h.dir + "/_work/app/app\n",
		"\n2 file job file x\ny tool\n",
		"\n3 . piped\n",
		"##[error]Process completed with exit code 1.",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
}

func TestHooks(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh", `echo "started $GITHUB_RUN_ID $GITHUB_REPOSITORY"; test "$GITHUB_RUN_ID" = 5`),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.script("completed.sh", `echo "completed $GITHUB_RUN_ID"`),
	}
	h.configure("box")
	h.listen()
	const workflow = "on: push\njobs:\n  j: {runs-on: box, steps: [{run: echo the step}]}\n"
	for id, want := range map[int64]string{5: "success", 6: "failure"} {
		s.startExample(id, workflow)
		j := s.completed(id).Jobs[0]
		if j.conclusion() != want || strings.Contains(j.Log, "\nthe step\n") != (want == "success") ||
			!strings.Contains(j.Log, fmt.Sprintf("started %d acme/app\n", id)) || !strings.Contains(j.Log, fmt.Sprintf("completed %d\n", id)) {
			t.Errorf("run %d: %s:\n%s", id, j.conclusion(), j.Log)
		}
	}
}

func TestHugeLineIsKeptToItsEnd(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'head -c 10485760 /dev/zero | tr \"\\0\" x; echo the-end'}]}\n")
	v := s.completed(id)
	log := v.Jobs[0].Log
	if len(log) > 1<<20+100 || !strings.Contains(log, "xxxthe-end\n") || !strings.HasPrefix(log, "[the first 94") || *v.Conclusion != "success" {
		t.Errorf("%d bytes, begins %.80q, ends %.80q", len(log), log, log[max(0, len(log)-80):])
	}
}

func TestOrphansOfAJobAreKilled(t *testing.T) {
	s := start(t)
	h, _ := s.online("a", "box")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'setsid sleep 1000 & echo $! > pid'}]}\n")
	v := s.completed(id)
	if *v.Conclusion != "success" || !strings.Contains(v.Jobs[0].Log, "Terminate orphan process: pid (") {
		t.Error(v.Jobs[0].Log)
	}
	pid := h.read("_work/app/app/pid")
	// A killed process is gone when the kernel gets to it, not at once.
	for deadline := time.Now().Add(patience); alive("/proc/" + strings.TrimSpace(pid)); {
		if time.Now().After(deadline) {
			t.Fatalf("process %s outlived its job", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

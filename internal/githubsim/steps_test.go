package githubsim_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ran are the words that the steps of a job have written as lines "ran WORD".
func (j jobView) ran() []string {
	out := []string{}
	for _, m := range regexp.MustCompile(`(?m)^ran (\S+)$`).FindAllStringSubmatch(j.Log, -1) {
		out = append(out, m[1])
	}
	return out
}

// everyKind is a job with all that may run in one: an action's scripts and steps of every condition.
const everyKind = `
on: push
env: {FLAG: up}
jobs:
  j:
    runs-on: box
    CONTAINER
    steps:
      - uses: standin/pre-post@v1
        with: {pre: echo ran pre-a, main: echo ran main-a, post: echo ran post-a}
      - {run: echo ran plain; FIRST}
      - {if: always(), run: echo ran always}
      - {if: failure(), run: echo ran failure}
      - {if: '${{ !cancelled() }}', run: echo ran not-cancelled}
      - {if: cancelled(), run: echo ran cancelled}
      - {if: env.FLAG == 'up' && github.repository == 'acme/app', run: echo ran compared}
      - {if: env.FLAG != 'up' || failure(), run: echo ran compared-failure}
      - {if: env.MINE == 'yes', env: {MINE: 'yes'}, run: echo ran with-its-env}
      - uses: standin/pre-post@v1
        if: always()
        with: {pre: echo ran pre-b, main: echo ran main-b, post: echo ran post-b}
      - run: echo ran last
`

// TestConditionsOfSteps has what each status of the job lets run, in order.
func TestConditionsOfSteps(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh", `echo ran started; test "$GITHUB_RUN_ID" != 6`),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.script("completed.sh", "echo ran completed"),
	}
	h.configure("box")
	h.listen()
	steps := strings.Replace(everyKind, "CONTAINER", "", 1)
	for name, tc := range map[string]struct {
		id              int64
		first, want     string
		wantConclusion  string
		cancelAtItsStep bool
	}{
		"success":      {5, "true", "started pre-a pre-b main-a plain always not-cancelled compared with-its-env main-b last post-b post-a completed", "success", false},
		"hook fails":   {6, "true", "started pre-a pre-b always failure not-cancelled compared-failure main-b post-b post-a completed", "failure", false},
		"a step fails": {7, "false", "started pre-a pre-b main-a plain always failure not-cancelled compared-failure main-b post-b post-a completed", "failure", false},
		"canceled":     {8, "sleep 1000", "started pre-a pre-b main-a plain always cancelled main-b post-b post-a completed", "cancelled", true},
	} {
		t.Run(name, func(t *testing.T) {
			s.startExample(tc.id, strings.Replace(steps, "FIRST", tc.first, 1))
			if tc.cancelAtItsStep {
				s.awaitLog(tc.id, "\nran plain\n")
				s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", tc.id), nil, nil)
			}
			j := s.completed(tc.id).Jobs[0]
			if d := cmp.Diff(strings.Fields(tc.want), j.ran()); d != "" || j.conclusion() != tc.wantConclusion {
				t.Errorf("%s: ran (-want +got):\n%s\n%s", j.conclusion(), d, j.Log)
			}
		})
	}
}

// TestCancelSparesAStepThatRunsAnyway has the cancel come while a step runs whose condition holds for a canceled job: it is not
// ended, and neither is a job-started hook. The step after it waits, since it may begin before the runner knows of the cancel.
func TestCancelSparesAStepThatRunsAnyway(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh",
		`echo ran started; until [ -e "$RUNNER_TOOL_CACHE/go" ]; do sleep 0.01; done; echo ran hook-to-its-end`)}
	h.configure("box")
	h.listen()
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: sleep 1000; echo ran plain}, {if: always(), run: echo ran always}]}\n")
	s.awaitLog(id, "ran started\n")
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
	h.write("_work/_tool/go", "")
	j := s.completed(id).Jobs[0]
	if d := cmp.Diff([]string{"started", "hook-to-its-end", "always"}, j.ran()); d != "" || j.conclusion() != "cancelled" {
		t.Errorf("%s: ran (-want +got):\n%s\n%s", j.conclusion(), d, j.Log)
	}
}

// TestStepsOfAStoppedRunner has no step run any more once the runner stops, not even with always().
func TestStepsOfAStoppedRunner(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.script("completed.sh", "echo ran completed")}
	h.configure("box")
	l := h.listen()
	id := s.startRun(strings.NewReplacer("CONTAINER", "", "FIRST", "sleep 1000").Replace(everyKind))
	s.awaitLog(id, "\nran plain\n")
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	j := s.completed(id).Jobs[0]
	if d := cmp.Diff([]string{"pre-a", "pre-b", "main-a", "plain"}, j.ran()); d != "" || j.conclusion() != "failure" {
		t.Errorf("%s: ran (-want +got):\n%s\n%s", j.conclusion(), d, j.Log)
	}
}

// TestContainerJobs has the start of the container wait for success, unlike the hook before it. Without a container no step of
// such a job runs.
func TestContainerJobs(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.script("docker", `echo "ran docker-$1-$2"; test "$2" != missing`)
	h.env = []string{
		"PATH=" + h.dir + ":" + os.Getenv("PATH"),
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh", `echo ran started; test "$GITHUB_RUN_ID" != 6`),
	}
	h.configure("box")
	h.listen()
	for id, tc := range map[int64]struct{ image, want, conclusion string }{
		5: {"alpine", "started docker-pull-alpine pre-a pre-b main-a plain always not-cancelled compared with-its-env main-b last post-b post-a", "success"},
		6: {"alpine", "started", "failure"},
		7: {"missing", "started docker-pull-missing", "failure"},
	} {
		s.startExample(id, strings.NewReplacer("CONTAINER", "container: "+tc.image, "FIRST", "true").Replace(everyKind))
		j := s.completed(id).Jobs[0]
		if d := cmp.Diff(strings.Fields(tc.want), j.ran()); d != "" || j.conclusion() != tc.conclusion {
			t.Errorf("run %d: %s: ran (-want +got):\n%s\n%s", id, j.conclusion(), d, j.Log)
		}
	}
}

// TestHooksGetNothingOfTheJob has the env of workflow and job stay out of a hook, and bash run it with -e alone.
func TestHooksGetNothingOfTheJob(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{"FROM_HOST=yes", "ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh",
		`false | true; echo "hook $FROM_HOST ${OF_JOB:-none} ${OF_WORKFLOW:-none} ${BASH_ENV:-none} $GITHUB_REPOSITORY $-"; false; echo beyond`)}
	h.configure("box")
	h.listen()
	id := s.startRun("on: push\nenv: {OF_WORKFLOW: x, BASH_ENV: /dev/null}\njobs:\n  j: {runs-on: box, env: {OF_JOB: x}, steps: [{run: echo the step}]}\n")
	j := s.completed(id).Jobs[0]
	if j.conclusion() != "failure" || !strings.Contains(j.Log, "hook yes none none none acme/app ehB\n") || strings.Contains(j.Log, "beyond") {
		t.Errorf("%s:\n%s", j.conclusion(), j.Log)
	}
}

// TestListenerReadsEnvAndNotPath has .env loaded by the listener, and .path left to the script of the service.
func TestListenerReadsEnvAndNotPath(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.configure("box")
	h.write(".env", "FROM_FILE=yes\n")
	h.write(".path", "/nowhere")
	h.listen()
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'echo \"$FROM_FILE $PATH\"'}]}\n")
	j := s.completed(id).Jobs[0]
	if j.conclusion() != "success" || !strings.Contains(j.Log, "yes "+os.Getenv("PATH")+"\n") {
		t.Errorf("%s:\n%s", j.conclusion(), j.Log)
	}
}

// TestSIGTERMGivesALimitedTime has the listener end by itself within the limit and be cut off after it, with its session left open.
// SIGINT has no limit.
func TestSIGTERMGivesALimitedTime(t *testing.T) {
	for name, tc := range map[string]struct {
		signal      syscall.Signal
		stop, limit string
		code        int
		status      string
	}{
		"within the limit":    {syscall.SIGTERM, "10ms", "10m", 0, "offline"},
		"beyond the limit":    {syscall.SIGTERM, "10m", "10ms", 143, "online"},
		"SIGINT has no limit": {syscall.SIGINT, "10ms", "1ns", 0, "offline"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			_, l := s.online("a", "box", "STANDIN_STOP_TIME="+tc.stop, "STANDIN_EXIT_LIMIT="+tc.limit)
			if err := l.cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			if code := l.exitCode(); code != tc.code {
				t.Errorf("exit code %d:\n%s", code, l.output())
			}
			if got := s.runners()[0].Status; got != tc.status {
				t.Errorf("status %s, want %s", got, tc.status)
			}
		})
	}
}

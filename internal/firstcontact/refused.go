package firstcontact

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/remuda-ci/remuda/internal/findings"
)

var refusedCheck = check{
	name: "refused",
	does: "runs jobs whose job-started hook fails, and whose hook also kills the worker",
	assumptions: []findings.Assumption{
		{
			Name:     "failed-hook-runs-steps",
			Text:     "After a job-started hook that only fails, steps with always() run.",
			ReliedOn: "internal/host/job-started.sh: why it kills the worker",
		},
		{
			Name:     "refused-runs-nothing",
			Text:     "After a job-started hook that kills the worker no step runs, whatever its condition.",
			ReliedOn: "internal/host/job-started.sh: a refused job runs nothing",
		},
		{
			Name:     "refused-fails",
			Text:     "A job whose worker is killed fails within a minute, since the listener reports it.",
			ReliedOn: "docs/agentd.md: the caller sees the refusal",
		},
		{
			Name:     "refused-log",
			Text:     "The log of such a job says why it was refused.",
			ReliedOn: "internal/host/job-started.sh: the message is written to the step's output and the worker's standard error",
		},
		{
			Name:     "refused-listener",
			Text:     "The listener of such a job goes on, and takes the next one.",
			ReliedOn: "docs/agentd.md: the host finishes its own run",
		},
	},
	run: checkRefused,
}

// The hooks. The second one does what internal/host/job-started.sh does.
const (
	refusalText = "first-contact: this job is refused"
	failingHook = "#!/bin/bash\necho '" + refusalText + "'\nexit 1\n"
	killingHook = `#!/bin/bash
echo '` + refusalText + `'
echo '` + refusalText + `' >>"/proc/$PPID/fd/2" &
sleep 2
kill -KILL "$PPID"
exit 1
`
)

func checkRefused(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	label, hook := s.name("label"), s.path("job-started.sh")
	if err := r.register(ctx, label); err != nil {
		return err
	}
	if err := os.WriteFile(hook, []byte(failingHook), 0o755); err != nil {
		return err
	}
	l, err := r.listen(ctx, "ACTIONS_RUNNER_HOOK_JOB_STARTED="+hook)
	if err != nil {
		return err
	}
	ran, j, err := runRefused(ctx, s, label)
	if err != nil {
		return err
	}
	s.Decide("failed-hook-runs-steps", len(ran) > 0, "%s; the job ended as %s", stepsText(ran), j.Conclusion)
	if err := os.WriteFile(hook, []byte(killingHook), 0o755); err != nil {
		return err
	}
	return checkKilled(ctx, s, l, hook, label)
}

// checkKilled runs a job with the hook that kills the worker, and then one with a hook that lets it in.
func checkKilled(ctx context.Context, s *session, l *listener, hook, label string) error {
	runs, err := s.startJob(ctx, label, refusedSteps(s)...)
	if err != nil {
		return err
	}
	j, took, err := runs.completed(ctx)
	if err != nil {
		return err
	}
	ran := stepsThatRan(s)
	s.Decide("refused-runs-nothing", len(ran) == 0, "%s", stepsText(ran))
	s.Decide("refused-fails", j.Conclusion == "failure" && took.Minutes() < 1, "it ended as %s, %s after it was queued", j.Conclusion, findings.Seconds(took))
	text, err := runs.log(ctx)
	if err != nil {
		return err
	}
	s.Decide("refused-log", strings.Contains(text, refusalText), "the log has %d lines with the reason, and ends: %s",
		strings.Count(text, refusalText), lastLines(text))
	if err := os.WriteFile(hook, []byte("#!/bin/bash\nexit 0\n"), 0o755); err != nil {
		return err
	}
	if l.ended() {
		s.Decide("refused-listener", false, "it ended with exit code %d", l.code())
		return nil
	}
	next, err := s.startJob(ctx, label, step{script: "true"})
	if err != nil {
		return err
	}
	j, _, err = next.completed(ctx)
	if err == nil {
		s.Decide("refused-listener", j.Conclusion == "success", "the next job ended as %s", j.Conclusion)
	}
	return err
}

// conditions are those under which a step runs after a failure, and one under which it does not.
var conditions = []string{"", "always()", "failure()", "!cancelled()"}

func markOf(s *session, n int) string { return s.path(fmt.Sprintf("ran-%d", n)) }

// refusedSteps have each condition, and leave a file when they run. The files of an earlier job are removed.
func refusedSteps(s *session) []step {
	var steps []step
	for n, condition := range conditions {
		_ = os.Remove(markOf(s, n)) // that it is not there is no error
		steps = append(steps, step{condition, fmt.Sprintf("touch '%s'", markOf(s, n))})
	}
	return steps
}

// stepsThatRan are the conditions of the steps that ran.
func stepsThatRan(s *session) []string {
	var ran []string
	for n, condition := range conditions {
		if _, err := os.Stat(markOf(s, n)); err == nil {
			ran = append(ran, orNoCondition(condition))
		}
	}
	return ran
}

func orNoCondition(condition string) string {
	if condition == "" {
		return "no condition"
	}
	return condition
}

func stepsText(ran []string) string {
	if len(ran) == 0 {
		return "no step ran"
	}
	return "these steps ran: " + strings.Join(ran, ", ")
}

// runRefused runs a job of the steps and returns which ran.
func runRefused(ctx context.Context, s *session, label string) ([]string, job, error) {
	runs, err := s.startJob(ctx, label, refusedSteps(s)...)
	if err != nil {
		return nil, job{}, err
	}
	j, _, err := runs.completed(ctx)
	return stepsThatRan(s), j, err
}

//go:build testhost

package host_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/agent"
)

// withPullRequest has a listener that takes a job of a pull request at once. Its worker lives until the job is refused, or a file ends it.
const withPullRequest = `#!/bin/bash
trap 'exit 0' INT
echo Listening for Jobs
bash -c "exec -a Runner.Worker bash -c '
	GITHUB_RUN_ID=7 GITHUB_REPOSITORY=acme/app GITHUB_EVENT_NAME=pull_request GITHUB_EVENT_PATH=../../event.json \
		bash -e \"\$ACTIONS_RUNNER_HOOK_JOB_STARTED\" >hook.out 2>&1
	echo \$? >hook.new; mv hook.new hook.status
	until [ -e ../../end ]; do sleep 0.01; done
'" &
while :; do sleep 0.01; done
`

// TestForkCheckInUnits: the hook, as the user of jobs and within their unit, can ask agentd what a job is of.
func TestForkCheckInUnits(t *testing.T) {
	for name, test := range map[string]struct{ payload, refusal string }{
		"of a branch": {ownPull, ""},
		"of a fork":   {forkPull, "This job is of a fork"},
		"no payload":  {"", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newUnitBed(t)
			b.write("../distribution/bin/Runner.Listener", withPullRequest, 0o755)
			b.write("../event.json", test.payload, 0o644)
			b.prepare()
			ctx := context.Background()
			b.check(b.Allow(ctx, oneOf("acme")))
			b.register()
			b.check(b.Listen(ctx, b.assignment()))
			b.until("the hook has judged", func(s agent.Observed) bool {
				return s.Jobs == 1 && (fileExists(b.path("runner/hook.status")) || test.refusal != "" && !s.Busy)
			})
			out, err := os.ReadFile(b.path("runner/hook.out"))
			b.check(err)
			status, _ := os.ReadFile(b.path("runner/hook.status")) // none: its worker was ended
			if (string(status) == "0\n") != (test.refusal == "") || !strings.Contains(string(out), test.refusal) {
				t.Errorf("the hook ended with %q: %s", status, out)
			}
			b.write("../end", "", 0o644)
			b.until("no worker lives", func(s agent.Observed) bool { return !s.Busy })
			b.check(b.Stop(ctx))
			b.until("the listener ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
		})
	}
}

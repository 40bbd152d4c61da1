package githubsim_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestEventPayload has the hook of a job find the payload of its event, which says whether a pull request is of a fork.
func TestEventPayload(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.env = []string{"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.script("started.sh", `echo "payload of $GITHUB_EVENT_NAME:" && cat "$GITHUB_EVENT_PATH"`)}
	h.configure("box")
	h.listen()
	for name, tc := range map[string]struct {
		event, head string
		want        []string
		wantNot     string
	}{
		"of a fork":              {"pull_request", "mallory/app", []string{`"full_name": "mallory/app"`, `"fork": true`, `"label": "mallory:patch-1"`}, ""},
		"of a fork, on the base": {"pull_request_target", "mallory/app", []string{`"fork": true`}, ""},
		"of a branch":            {"pull_request", "", []string{`"label": "acme:patch-1"`}, `"fork": true`},
		"none":                   {"push", "", []string{`"ref": "refs/heads/main"`}, "pull_request\":"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.startRunFrom(map[string]any{"workflow": "on: push\njobs: {j: {runs-on: box, steps: [{run: 'true'}]}}\n", "event": tc.event, "head_repository": tc.head})
			j := s.completed(id).Jobs[0]
			if j.conclusion() != "success" || (tc.wantNot != "" && strings.Contains(j.Log, tc.wantNot)) {
				t.Errorf("%s:\n%s", j.conclusion(), j.Log)
			}
			for _, want := range append(tc.want, fmt.Sprintf("payload of %s:\n", tc.event)) {
				if !strings.Contains(j.Log, want) {
					t.Errorf("%q is missing:\n%s", want, j.Log)
				}
			}
		})
	}
}

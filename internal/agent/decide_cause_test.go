package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
)

// TestCauseOfAListenersEnd: its first line, which is what people see, has the last
// line of the log that complains, and none that does not.
func TestCauseOfAListenersEnd(t *testing.T) {
	const ended = "the listener ended and does not restart (exit code 1)"
	for name, test := range map[string]struct{ log, want string }{
		"no log":         {"", ended},
		"nothing wrong":  {"√ Connected to GitHub\n\nListening for Jobs", ended + "\n√ Connected to GitHub\n\nListening for Jobs"},
		"one complaint":  {"√ Connected to GitHub\nAn error occurred: Access denied\nbye", ended + ": An error occurred: Access denied\n√ Connected to GitHub\nAn error occurred: Access denied\nbye"},
		"the last of it": {"Error: a\n  Unable to go on\n", ended + ": Unable to go on\nError: a\n  Unable to go on\n"},
		"a long log":     {"Error: a\n" + strings.Repeat("x", 1000) + "\n" + strings.Repeat("y", 1500), ended + ": Error: a\n" + strings.Repeat("y", 1500)},
		"one long line":  {strings.Repeat("error ", 1000), ended},
	} {
		t.Run(name, func(t *testing.T) {
			d := agent.Decide(facts(exited(1, time.Minute), observed(func(s *agent.Observed) { s.Listener.Detail = test.log })), start)
			if d.Answer.Detail != test.want {
				t.Errorf("got %q, want %q", d.Answer.Detail, test.want)
			}
		})
	}
}

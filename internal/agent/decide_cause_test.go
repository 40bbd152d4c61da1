package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The listener's own words tell a refusal of GitHub's from a fault of the host, under an exit code that both have.
func TestWhoseFaultAListenersEndIs(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		jit  bool
		want lifecycle.Cause
	}{
		"a fault of its own":     {"An error occurred: Out of memory", false, lifecycle.CauseHost},
		"a refused version":      {"Listening for Jobs\nAn error occurred: Runner version v2.329.0 is deprecated and cannot receive messages.", false, lifecycle.CauseVersion},
		"of a just-in-time one":  {"Listening for Jobs\nAn error occurred: Runner version v2.329.0 is deprecated and cannot receive messages.", true, lifecycle.CauseVersion},
		"a deleted registration": {"Failed to create a session. The runner registration has been deleted from the server, please re-configure.", false, lifecycle.CauseGitHub},
		"a clock":                {"The local machine's clock may be out of sync with the server time by more than five minutes. Please sync your clock.", false, lifecycle.CauseClock},
	} {
		t.Run(name, func(t *testing.T) {
			edits := []edit{exited(1, time.Minute), observed(func(s *agent.Observed) { s.Listener.Detail, s.Listener.Listened = test.log, true })}
			if test.jit {
				edits = append(edits, jobScoped)
			}
			if d := agent.Decide(facts(edits...), start); d.Answer.Signal != lifecycle.SignalRegFailed || d.Answer.Cause != test.want {
				t.Errorf("%+v, want cause %s", d.Answer, test.want)
			}
		})
	}
}

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

package githubsim_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// inFlow restarts the stand-in with the old or with the runner-admin flow of config.sh.
func (s *standin) inFlow(old bool) {
	s.t.Helper()
	s.stop()
	s.opts.OldRunnerFlow = old
	s.up()
}

// remove runs config.sh remove and returns its output and its exit code.
func (h *host) remove(args ...string) (string, int) {
	h.s.t.Helper()
	cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + h.s.token("remove")}, "config.sh", append([]string{"remove"}, args...)...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func (h *host) configured() bool {
	_, err := os.Stat(filepath.Join(h.dir, ".runner"))
	return err == nil
}

// In the runner-admin flow config.sh removes a registration by its id alone: one that GitHub has deleted is an error, after which the
// files stay. The old flow looks for it first (ConfigurationManager.cs:560-599).
func TestRemoveOfARegistrationThatIsGone(t *testing.T) {
	for name, tt := range map[string]struct {
		old        bool
		code       int
		configured bool
		says       []string
	}{
		"runner-admin flow": {false, 1, true, []string{
			"Http response code: NotFound from 'Delete ", "/api/v3/repos/acme/app/actions/runners/1' (Request Id: ", `"message":"Not Found"`,
			"Failed: Removing runner from the server\nResponse status code does not indicate success: 404 (Not Found).\n"}},
		"old flow": {true, 0, false, []string{"Does not exist. Skipping Removing runner from the server\n\n√ Runner removed successfully\n√ Removed .credentials\n√ Removed .runner\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.inFlow(tt.old)
			h := s.newHost("a")
			h.configure("box")
			s.call(204, "DELETE", "/repos/acme/app/actions/runners/1", nil, nil)
			out, code := h.remove()
			if code != tt.code || h.configured() != tt.configured || strings.Count(out, "Http response code") > 1 {
				t.Errorf("exit code %d, configured %t: %s", code, h.configured(), out)
			}
			for _, want := range tt.says {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q: %s", want, out)
				}
			}
		})
	}
}

// A busy runner is a 422, which config.sh tries three times (RunnerDotcomServer.cs:106-177).
func TestRemoveOfABusyRunnerIsTriedThreeTimes(t *testing.T) {
	s := start(t)
	h, _ := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	out, code := h.remove()
	if code != 1 || !h.configured() || strings.Count(out, "Http response code: UnprocessableEntity from 'Delete ") != 3 {
		t.Errorf("exit code %d, configured %t: %s", code, h.configured(), out)
	}
	if n := s.calls()["POST "+protocol.PathRemove]; n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

// --local deletes the files and makes no call (src/Runner.Listener/Runner.cs:170-175).
func TestRemoveLocal(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.configure("box")
	if out, code := h.remove("--local"); code != 0 || h.configured() || len(s.runners()) != 1 {
		t.Errorf("exit code %d, configured %t, %d runners: %s", code, h.configured(), len(s.runners()), out)
	}
}

// A refusal is printed with the name that .NET has for its status, the call, and the body.
func TestRefusalsReadLikeThoseOfTheRunner(t *testing.T) {
	for status, tt := range map[int]struct {
		name, says string
		tries      int
	}{
		401: {"Unauthorized", "fault of the GitHub stand-in", 3},
		403: {"Forbidden", "You have exceeded a secondary rate limit.", 3},
		404: {"NotFound", "fault of the GitHub stand-in", 1},
		429: {"TooManyRequests", "You have exceeded a secondary rate limit.", 3},
		503: {"ServiceUnavailable", "fault of the GitHub stand-in", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			s.call(204, "POST", "/_standin/faults", map[string]any{"route": protocol.PathAuthorize, "status": status, "count": 3, "retry_after": 60}, nil)
			h := s.newHost("a")
			cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "config.sh", "--unattended", "--url", s.url+"/acme/app")
			out, _ := cmd.CombinedOutput()
			line := regexp.MustCompile(`Http response code: ` + tt.name + ` from 'POST http://\S+/api/v3/actions/runner-registration' \(Request Id: [0-9A-F:]+\)\n\{.*` + tt.says)
			if found := line.FindAllIndex(out, -1); cmd.ProcessState.ExitCode() != 1 || len(found) != tt.tries {
				t.Errorf("exit code %d, %d lines, want %d: %s", cmd.ProcessState.ExitCode(), len(found), tt.tries, out)
			}
		})
	}
}

// config.sh knows the groups before it registers, and a group that is not there is its own error (ConfigurationManager.cs:218-252).
func TestRunnerGroupOfARegistration(t *testing.T) {
	s := start(t)
	s.call(204, "PUT", "/_standin/runner-groups", map[string]any{"groups": []map[string]any{{"id": 7, "name": "spot"}}}, nil)
	var token struct{ Token string }
	s.call(201, "POST", "/orgs/acme/actions/runners/registration-token", nil, &token)
	register := func(group string) (string, int) {
		h := s.newHost("of-" + group)
		cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + token.Token}, "config.sh", "--unattended", "--url", s.url+"/acme", "--name", "of-"+group, "--runnergroup", group)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := register("Spot"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := register("gone"); code != 1 || !strings.Contains(out, `Could not find any self-hosted runner group named "gone".`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

package githubsim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s *standin) versions(minimum, latest string) {
	s.t.Helper()
	s.call(204, "PUT", "/_standin/runner-versions", map[string]any{"minimum": minimum, "latest": latest}, nil)
}

// older makes the host's runner one of version 2.9.0, which is older than any that GitHub takes.
func (h *host) older() *host {
	h.s.t.Helper()
	if err := runner.SetVersion(h.dir, "2.9.0"); err != nil {
		h.s.t.Fatal(err)
	}
	return h
}

// The stand-in's runner says that it is the version whose source it follows, which is the newest that the stand-in's GitHub has.
func TestVersionIsThatOfTheSource(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	minor := runner.Version[:strings.LastIndex(runner.Version, ".")]
	if !strings.Contains(string(page), "actions/runner "+minor+")") {
		t.Errorf("docs/testing.md follows another version than %s", minor)
	}
	if newest := state.KnownReleases[0].Tag; newest != "v"+runner.Version {
		t.Errorf("the runner is %s, and the newest release %s", runner.Version, newest)
	}
}

// A version below the minimum is refused at the registration and, if it was raised since, at the message queue. Only who asks for it
// gets an exit code of its own.
func TestRefusedVersions(t *testing.T) {
	t.Run("at the registration", func(t *testing.T) {
		s := start(t)
		s.versions("2.329.0", "")
		h := s.newHost("a").older()
		cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "config.sh", "--unattended", "--url", s.url+"/acme/app", "--name", "a")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "Http response code: Forbidden from 'Post ") || !strings.Contains(string(out), "Runner version 2.9.0 is deprecated") {
			t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
		}
	})
	for variable, want := range map[string]int{"": 1, "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1": 7} {
		t.Run("while it listens "+variable, func(t *testing.T) {
			s := start(t)
			h := s.newHost("a").older()
			h.configure("box")
			s.versions("2.329.0", "")
			l := h.listen(variable)
			if code := l.exitCode(); code != want || !h.configured() || !strings.Contains(l.output(), "An error occurred: Runner version v2.9.0 is deprecated and cannot receive messages.") {
				t.Errorf("exit code %d, configured %t:\n%s", code, h.configured(), l.output())
			}
		})
	}
}

// A runner that has to update itself takes no job, and ends for the script that replaces it.
func TestSelfUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
	}{"run once": {[]string{"--ephemeral"}, 4}, "many jobs": {nil, 3}} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.versions("", "2.340.0")
			h := s.newHost("a").older()
			h.configure("box", tt.args...)
			id := s.startRun(oneJob)
			l := h.listen("STANDIN_RUNNER_UPDATE_TIME=50ms")
			if code := l.exitCode(); code != tt.code || s.run(id).Jobs[0].StartedAt != nil {
				t.Errorf("exit code %d, job %+v:\n%s", code, s.run(id).Jobs[0], l.output())
			}
			finished := filepath.Join(h.dir, "update.finished")
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
				if _, err := os.Stat(finished); err == nil {
					break
				}
			}
			out, err := h.command(nil, "bin/Runner.Listener", "--version").Output()
			if err != nil || string(out) != "2.340.0\n" {
				t.Errorf("version after the update: %q, %v", out, err)
			}
		})
	}
}

// A runner whose settings disable updates gets no such message, and takes the job.
func TestSelfUpdateIsDisabled(t *testing.T) {
	s := start(t)
	s.versions("", "2.340.0")
	h := s.newHost("a").older()
	h.configure("box", "--disableupdate")
	l := h.listen()
	l.awaitOutput("Listening for Jobs")
	if v := s.completed(s.startRun(oneJob)); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
}

// A just-in-time configuration has no such setting, so its runner updates itself and its job is lost to it.
func TestSelfUpdateOfAJustInTimeRunner(t *testing.T) {
	s := start(t)
	s.versions("", "2.340.0")
	h := s.newHost("jit").older()
	var made struct {
		Encoded string `json:"encoded_jit_config"`
	}
	s.call(201, "POST", "/api/v3/repos/acme/app/actions/runners/generate-jitconfig",
		map[string]any{"name": "jit", "runner_group_id": 1, "labels": []string{"box"}}, &made)
	l := h.listen("ACTIONS_RUNNER_INPUT_JITCONFIG=" + made.Encoded)
	if code := l.exitCode(); code != 4 {
		t.Errorf("exit code %d:\n%s", code, l.output())
	}
}

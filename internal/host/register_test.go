package host_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestRegistrationFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		print string
		cause lifecycle.Cause
	}{
		"not found":   {"Http response code: NotFound from 'POST https://api.github.com/actions/runner-registration' (Request Id: AB:1:2:3:4)", lifecycle.CauseGitHub},
		"forbidden":   {"Http response code: Forbidden from 'POST https://api.github.com/actions/runner-registration' (Request Id: AB:1:2:3:4)\n{\"message\":\"no\"}", lifecycle.CauseGitHub},
		"conflict":    {"Http response code: UnprocessableEntity from 'Post https://api.github.com/actions/runners/register' (Request Id: AB:1:2:3:4)", lifecycle.CauseGitHub},
		"secondary":   {"Http response code: Forbidden from 'POST https://api.github.com/actions/runner-registration' (Request Id: AB:1:2:3:4)\n{\"message\":\"You have exceeded a secondary rate limit.\"}", lifecycle.CauseRateLimit},
		"too many":    {"Http response code: TooManyRequests from 'POST https://api.github.com/actions/runner-registration' (Request Id: AB:1:2:3:4)", lifecycle.CauseRateLimit},
		"no group":    {"Could not find any self-hosted runner group named \"gone\".", lifecycle.CauseGroup},
		"old version": {"Http response code: Forbidden from 'Post https://api.github.com/actions/runners/register' (Request Id: AB:1:2:3:4)\n{\"message\":\"Runner version 2.300.0 is deprecated and cannot be registered.\"}", lifecycle.CauseVersion},
		"clock":       {"The local machine's clock may be out of sync with the server time by more than five minutes. Please sync your clock with your domain or internet time and try again.", lifecycle.CauseClock},
		"unavailable": {"Http response code: ServiceUnavailable from 'POST https://api.github.com/actions/runner-registration'", lifecycle.CauseGitHub},
		"no network":  {"dial tcp 127.0.0.1:1: connect: connection refused", lifecycle.CauseGitHub},
		"no name":     {"Name or service not known (api.github.com:443)", lifecycle.CauseGitHub},
		"bad library": {"Libicu's dependencies is missing for Dotnet Core 6.0", lifecycle.CauseHost},
		"500 in text": {"line 500 of the script", lifecycle.CauseHost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.write("print", test.print+"\n", 0o644)
			b.write("fail", "", 0o644)
			s := b.register()
			p := s.Registered
			if p.Phase != agent.PhaseFailed || p.Cause != test.cause || !strings.Contains(p.Detail, "exit code 1: ") || !strings.HasSuffix(p.Detail, test.print) {
				t.Errorf("registered: %+v, want cause %s", p, test.cause)
			}
			b.check(os.Remove(b.path("fail")))
			if p := b.register().Registered; p.Phase != agent.PhaseOK || p.Attempt != 2 {
				t.Errorf("second attempt: %+v", p)
			}
		})
	}
}

// Success is not what config.sh says but that the registration is gone.
func TestRemovalThatRemovesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.write("keep", "", 0o644)
	b.check(b.Deregister(context.Background(), 8, lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "x"}))
	s := b.until("config.sh remove ends", func(s agent.Observed) bool { return s.Removed.Phase != agent.PhaseRunning })
	if s.Removed.Phase != agent.PhaseFailed || s.Removed.Cause != lifecycle.CauseHost {
		t.Errorf("removed: %+v", s.Removed)
	}
}

// A registration that GitHub no longer has is removed, although config.sh fails for it and leaves its files.
func TestRemovalOfARegistrationThatIsGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says  string
		phase agent.Phase
		cause lifecycle.Cause
	}{
		"gone":          {"Http response code: NotFound from 'Delete https://api.github.com/repos/acme/app/actions/runners/12' (Request Id: AB:1:2:3:4)\n{\"message\":\"Not Found\"}\nFailed: Removing runner from the server", agent.PhaseOK, ""},
		"busy":          {"Http response code: UnprocessableEntity from 'Delete https://api.github.com/repos/acme/app/actions/runners/12' (Request Id: AB:1:2:3:4)", agent.PhaseFailed, lifecycle.CauseGitHub},
		"no such token": {"Http response code: NotFound from 'POST https://api.github.com/actions/runner-registration' (Request Id: AB:1:2:3:4)", agent.PhaseFailed, lifecycle.CauseGitHub},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.register()
			b.write("print", tt.says+"\n", 0o644)
			b.write("fail", "", 0o644)
			b.check(b.Deregister(context.Background(), 8, lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "x"}))
			s := b.until("config.sh remove ends", func(s agent.Observed) bool { return s.Removed.Phase != agent.PhaseRunning })
			if s.Removed.Phase != tt.phase || s.Removed.Cause != tt.cause || s.Registration != (tt.phase == agent.PhaseFailed) {
				t.Errorf("removed %+v, registration %t", s.Removed, s.Registration)
			}
		})
	}
}

// A listener that deletes its configuration and ends well has lost its registration on GitHub.
func TestListenerThatUnconfigures(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.write("exit", "0", 0o644)
	b.check(b.Listen(context.Background(), b.assignment()))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	b.check(os.Remove(b.path("runner/.runner")))
	if s := b.look(); !s.Listener.Unconfigured || s.Registration || s.Registered.Phase != agent.PhaseOK {
		t.Errorf("scene: %+v", s)
	}
}

// What is lost of the agent's own files is rebuilt from the runner's.
func TestLostTasks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.check(os.RemoveAll(b.path("state")))
	b.reopen()
	s := b.look()
	if p := s.Registered; p.Phase != agent.PhaseOK || p.Assignment != 7 || !s.Registration || s.RegisteredAs != lifecycle.RegistrationToken {
		t.Errorf("scene: %+v", s)
	}
}

// When a wrapper is killed, what it knew is still in its file.
func TestKilledWrapper(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("hang", "", 0o644)
	b.check(b.Register(context.Background(), b.assignment()))
	b.until("config.sh runs", func(agent.Observed) bool { return strings.TrimSpace(b.pidOf("register")) != "" })
	b.kill(b.pidOf("register"))
	s := b.until("its end is seen", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseFailed })
	if !strings.Contains(s.Registered.Detail, "was killed") {
		t.Errorf("registered: %+v", s.Registered)
	}
}

// The log of the assignment before is kept, whole.
func TestLogOfTheLastAssignment(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, text := range []string{"first", "second", "third"} {
		b.write("print", text+"\n", 0o644)
		b.register()
		b.check(os.Remove(b.path("runner/.runner")))
		b.clean(8)
	}
	if log, before := b.read("logs/runner.log"), b.read("logs/runner.log.1"); !strings.Contains(log, "third") ||
		strings.Contains(log, "second") || !strings.Contains(before, "second") || strings.Contains(before, "first") {
		t.Errorf("runner.log: %s\nrunner.log.1: %s", log, before)
	}
}

// Lines of any length are written to the log whole and do not hide the one
// that counts.
func TestHugeOutput(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("print", strings.Repeat("x", 3<<20), 0o644)
	b.register()
	b.listen()
	if n := strings.Count(b.read("logs/runner.log"), "x"); n < 2*3<<20 {
		t.Errorf("%d bytes of output are in the log, want at least %d", n, 2*3<<20)
	}
}

// The listener tells a refused version from other ends only if it is asked to.
func TestRefusedVersionHasItsExitCode(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.listen()
	if env := b.read("env-listener"); !strings.Contains(env, "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1\n") {
		t.Errorf("environment of the listener: %s", env)
	}
}

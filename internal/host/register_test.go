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
		"refused":     {"Http response code: NotFound from 'POST https://api.github.com/actions/runner-registration'", lifecycle.CauseHost},
		"unavailable": {"Http response code: ServiceUnavailable from 'POST https://api.github.com/actions/runner-registration'", lifecycle.CauseGitHub},
		"stand-in":    {"register runner x: The server is unwell (HTTP 503)", lifecycle.CauseGitHub},
		"rate limit":  {"You are being limited (HTTP 429)", lifecycle.CauseGitHub},
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

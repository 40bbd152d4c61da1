package host_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// jitListener writes down its configuration as actions/runner does: into files
// that every user can read. It ends when its file says so.
const jitListener = `#!/bin/sh
trap 'exit 0' INT
umask 022
env >../env-listener
chmod 600 ../env-listener
for name in .credentials_rsaparams .credentials; do printf '%s' "${ACTIONS_RUNNER_INPUT_JITCONFIG:-}" >$name; done
printf '\357\273\277{"AgentId": "12", "AgentName": "remuda-7-i-1", "Ephemeral": "True", "PoolId": "1"}' >.runner
[ ! -e ../unheard ] || exit "$(cat ../exit)"
echo "2026-01-01 12:00:00Z: Listening for Jobs"
until [ -e ../exit ]; do sleep 0.01; done
exit "$(cat ../exit)"
`

// jitBed is a host whose runner takes a JIT configuration, configured by it.
func jitBed(t *testing.T) (*bed, agent.Assignment) {
	t.Helper()
	b := newBed(t)
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", jitListener, 0o755)
	b.reopen()
	a := b.assignment()
	a.Registration = lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "http://github/acme", Secret: "jit-s3cret"}
	b.check(b.Register(context.Background(), a))
	b.until("it is configured", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseOK })
	return b, a
}

func (b *bed) listenJIT(a agent.Assignment) agent.Observed {
	b.Helper()
	b.check(b.Listen(context.Background(), a))
	return b.until("the listener listens", func(s agent.Observed) bool {
		// A look may fall between the two: the registration is looked at first.
		return s.Listener.Phase == agent.ListenerListening && s.Registration
	})
}

// The configuration reaches the listener in its environment, and nothing else.
func TestJITConfigurationStaysSecret(t *testing.T) {
	t.Parallel()
	b, a := jitBed(t)
	b.listenJIT(a)
	if env := b.read("env-listener"); !strings.Contains(env, "ACTIONS_RUNNER_INPUT_JITCONFIG=jit-s3cret\n") {
		t.Errorf("the listener has no configuration: %s", env)
	}
	if _, err := os.Stat(b.path("env-config")); err == nil {
		t.Error("config.sh was called")
	}
	for _, pid := range b.processes() {
		args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && strings.Contains(string(args), "s3cret") {
			t.Errorf("process %d has it in its arguments: %q", pid, args)
		}
	}
	found := 0
	b.check(filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "s3cret") {
			return err
		}
		info, err := e.Info()
		if found++; err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has it, with mode %s", path, info.Mode())
		}
		return err
	}))
	if found != 3 { // the runner's two files, and what the listener wrote down for this test
		t.Errorf("%d files have it, want 3", found)
	}
}

// The files of a JIT registration are known for what they are, also when all is
// lost that the agent wrote, and the clean-up takes them away.
func TestJITRegistrationIsCleanedAway(t *testing.T) {
	t.Parallel()
	b, a := jitBed(t)
	if s := b.listenJIT(a); s.RegisteredAs != lifecycle.RegistrationJIT || s.Registered.Assignment != 7 || !s.Registration {
		t.Errorf("scene %+v", s)
	}
	b.check(b.Stop(context.Background()))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase != agent.ListenerStopping })
	b.reopen()
	if s := b.look(); s.RegisteredAs != lifecycle.RegistrationJIT || !s.Registration {
		t.Errorf("scene of a restarted agent %+v", s)
	}
	b.check(os.RemoveAll(b.path("state/tasks")))
	b.reopen()
	if s := b.look(); s.RegisteredAs != lifecycle.RegistrationJIT || !s.Registration || s.Registered.Assignment != 7 {
		t.Errorf("scene by the runner's own files %+v", s)
	}
	s := b.clean(8)
	if s.Cleaned.Phase != agent.PhaseOK || s.Registration || s.RegisteredAs != "" {
		t.Errorf("scene after the clean-up %+v", s)
	}
	for _, name := range []string{".runner", ".credentials", ".credentials_rsaparams"} {
		if _, err := os.Lstat(b.path("runner/" + name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// Whether a listener that has ended had reached GitHub is not forgotten.
func TestListened(t *testing.T) {
	t.Parallel()
	for name, listened := range map[string]bool{"it listened": true, "it never did": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := jitBed(t)
			if !listened {
				b.write("unheard", "", 0o644)
			}
			b.write("exit", "1", 0o644)
			b.check(b.Listen(context.Background(), a))
			b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
			b.reopen()
			if l := b.look().Listener; l.Listened != listened || l.Code != agent.CodeTerminated {
				t.Errorf("listener %+v", l)
			}
		})
	}
}

// A runner that is restarted has its files, and no configuration is given it.
func TestJITListenerRestarted(t *testing.T) {
	t.Parallel()
	b, a := jitBed(t)
	b.write("exit", "2", 0o644)
	b.check(b.Listen(context.Background(), a))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	b.check(os.Remove(b.path("exit")))
	a.Registration = lifecycle.Registration{} // the record no longer has it
	b.listenJIT(a)
	if env := b.read("env-listener"); strings.Contains(env, "JITCONFIG") {
		t.Errorf("environment %s", env)
	}
}

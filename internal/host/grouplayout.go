package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/remuda-ci/remuda/internal/host/tree"
	"github.com/remuda-ci/remuda/internal/proc"
)

// groupLayout is the layout of the embedded default: everything belongs to the agent's own user.
type groupLayout struct{ h *Host }

var _ layout = (*groupLayout)(nil)

// makeReady does not run the pre-runner script again: what it made may be anywhere that
// the agent's user can write to, and is not renewed.
func (l *groupLayout) makeReady(context.Context) error { return nil }

// prepareCommand runs the pre-runner script. If one of its commands fails, even in the
// middle of a pipe, the script fails.
func (l *groupLayout) prepareCommand() *command {
	h := l.h
	if h.o.PreRunner == "" {
		return nil
	}
	return &command{
		args: []string{"/bin/bash", "-e", "-o", "pipefail", h.o.PreRunner},
		dir:  h.path("work"), env: h.environment(), log: h.path("logs/prepare.log"), limit: h.o.PreRunnerLimit,
	}
}

// startClean cleans within the agent. If the agent is killed, the clean-up starts over.
func (l *groupLayout) startClean(_ context.Context, t task, b startRecord) error {
	if err := t.recordStart(b); err != nil {
		return err
	}
	lock, err := t.lock()
	if err != nil {
		return err
	}
	go func() {
		_ = l.h.CleanNow(context.Background(), b.Assignment) // which has recorded the result
		lock.Close()
		l.h.notify()
	}()
	return nil
}

func (l *groupLayout) clean(context.Context) error {
	if err := l.h.killAll(proc.KillLimit); err != nil {
		return err
	}
	for _, dir := range jobDirs {
		if err := tree.Renew(l.h.path(dir), self(), 0o755); err != nil {
			return err
		}
	}
	return l.h.mirrorRunner(self())
}

func (l *groupLayout) verify(context.Context) error {
	pids, err := l.h.markedProcesses()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("process %d (%s) still runs", pids[0], proc.Default.Program(pids[0]))
	}
	for _, dir := range jobDirs {
		info, err := os.Lstat(l.h.path(dir))
		entries, readErr := os.ReadDir(l.h.path(dir))
		if err := cmp.Or(err, readErr); err != nil {
			return err
		}
		if !info.IsDir() || len(entries) > 0 {
			return fmt.Errorf("%s is not an empty directory", l.h.path(dir))
		}
	}
	return l.h.checkDisk()
}

func (l *groupLayout) registrationDir() string { return l.h.path("runner") }

func (l *groupLayout) removeCommand() command {
	return command{args: []string{l.h.path("runner/config.sh"), "remove", "--unattended"}, dir: l.h.path("runner"), env: l.h.environment()}
}

func (l *groupLayout) setUp() error {
	h := l.h
	if err := h.makeDirs("work", "home", "tmp", "hooks", "logs", "state/tasks", jobBox); err != nil {
		return err
	}
	if err := h.writeHooks(); err != nil {
		return err
	}
	if h.hasRunner() {
		return nil
	}
	return h.mirrorRunner(self())
}

// protectCredentials creates the files for the secrets of a JIT configuration, readable by their owner only.
// The runner keeps the mode of an existing file, and would create one that everybody can read.
func (l *groupLayout) protectCredentials() error {
	for _, name := range []string{"runner/.credentials", "runner/.credentials_rsaparams"} {
		f, err := os.OpenFile(l.h.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("protect credentials: %w", err)
		}
	}
	return nil
}

// self is the agent's own user.
func self() tree.Owner { return tree.Owner{UID: os.Getuid(), GID: os.Getgid()} }

func (l *groupLayout) environment() []string {
	env := []string{"HOME=" + l.h.path("home"), "TMPDIR=" + l.h.path("tmp"), "PATH=" + cmp.Or(os.Getenv("PATH"), usualPath)}
	if os.Geteuid() == 0 {
		// The runner refuses to run as root without this.
		env = append(env, "RUNNER_ALLOW_RUNASROOT=1")
	}
	return env
}

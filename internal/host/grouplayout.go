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

// ready: what the pre-runner script made is wherever the agent's user may write.
func (l *groupLayout) makeReady(context.Context) error { return nil }

// preparation is the pre-runner script. A command of it that fails makes it
// fail, also in the middle of a pipe.
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

// startClean cleans within the agent; when that is killed it begins again.
func (l *groupLayout) startClean(_ context.Context, t task, b startRecord) error {
	if err := t.recordStart(b); err != nil {
		return err
	}
	lock, err := t.lock()
	if err != nil {
		return err
	}
	go func() {
		_ = l.h.CleanNow(context.Background(), b.Assignment) // which wrote down how it went
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
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(l.h.path(dir))
		if err != nil {
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

// shield makes the files for the secrets of a JIT configuration, so
// that they are nobody else's to read: the runner leaves the mode of a file that
// is there, and would make one that everybody may read.
func (l *groupLayout) protectCredentials() error {
	for _, name := range []string{"runner/.credentials", "runner/.credentials_rsaparams"} {
		f, err := os.OpenFile(l.h.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("shield credentials: %w", err)
		}
	}
	return nil
}

// self is the agent's own user.
func self() tree.Owner { return tree.Owner{UID: os.Getuid(), GID: os.Getgid()} }

func (l *groupLayout) environment() []string {
	env := []string{"HOME=" + l.h.path("home"), "TMPDIR=" + l.h.path("tmp"), "PATH=" + cmp.Or(os.Getenv("PATH"), usualPath)}
	if os.Geteuid() == 0 {
		// The runner refuses to run as root unless it is told that this is meant.
		env = append(env, "RUNNER_ALLOW_RUNASROOT=1")
	}
	return env
}

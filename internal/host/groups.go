package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/host/jobline"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/tree"
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

func (l *groupLayout) clean(_ context.Context, r *statement.Reset, _ bool) error {
	if err := l.h.killAll(proc.KillLimit); err != nil {
		return err
	}
	r.Did("processes")
	for _, dir := range jobDirs {
		if err := tree.Renew(l.h.path(dir), self(), 0o755); err != nil {
			return err
		}
	}
	r.Did("directories")
	if err := l.h.mirrorRunner(self()); err != nil {
		return err
	}
	r.Did("runner")
	return nil
}

// keyWithinReach: jobs run as the user that the key belongs to.
func (l *groupLayout) keyWithinReach() bool { return true }

func (l *groupLayout) verify(_ context.Context, r *statement.Reset, _ bool) error {
	pids, err := l.h.markedProcesses()
	if err != nil {
		return err
	}
	r.Check("processes", len(pids))
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
			r.Check("directories", 1)
			return fmt.Errorf("%s is not an empty directory", l.h.path(dir))
		}
	}
	r.Check("directories", 0)
	if err := l.h.checkDisk(); err != nil {
		r.Check("disk space", 1)
		return err
	}
	r.Check("disk space", 0)
	return nil
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

// groupProcesses are the processes of the embedded default: each task runs in a process
// group of its own, as the agent's own user. Its files are
//
//	NAME.lock   locked by the process for as long as it lives
//	NAME.pid    its pid, which is also the id of its group
//
// If the lock is free the process is gone, even if the agent that started it has died
// too. No pid is compared with a remembered one.
type groupProcesses struct {
	h    *Host
	scan logScan
	jobs logLines
}

var _ processes = (*groupProcesses)(nil)

// wrapper runs a command and records its pid and its exit code. It holds the lock, file descriptor 3, and the
// command does not. The command must not run if its pid cannot be written: it could not be ended. What runs before it may fail.
const wrapper = `echo "$$" >"$1.pid" || exit 126
name=$1 before=$2
shift 2
[ -z "$before" ] || eval "$before" </dev/null 3>&-
"$@" </dev/null 3>&-
code=$?
echo "$code" >"$name.exit"
`

func (g *groupProcesses) start(_ context.Context, t task, b startRecord, c command) error {
	log, err := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if b.LogOffset, err = log.Seek(0, 2); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := t.recordStart(b); err != nil {
		return err
	}
	lock, err := t.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", wrapper, "remuda-" + t.name, t.path, shellCommand(c.before)}, c.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, append(c.env, c.secrets...), log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", t.name, err)
	}
	go func() {
		_ = cmd.Wait() // the result is in NAME.exit
		g.h.notify()
	}()
	return nil
}

func (g *groupProcesses) find(_ context.Context, t task, _ startRecord) (taskProcess, error) {
	held, err := isLocked(t.path + ".lock")
	if err != nil {
		return taskProcess{}, err
	}
	// The order matters: a task writes its pid before it releases the lock.
	group := readNumber(t.path + ".pid")
	if !held {
		return taskProcess{ended: group > 0, code: codeUnknown}, nil
	}
	f := taskProcess{running: true, handle: handle{group: group}}
	if group == 0 {
		return f, nil
	}
	pids, err := proc.Default.Children(group)
	if err == nil && len(pids) > 0 {
		f.pid = pids[0]
	}
	return f, err
}

// adopt scans all processes, so it is called only when there is a reason.
func (g *groupProcesses) adopt(context.Context, bool) (*startRecord, taskProcess, error) {
	pid, err := g.h.findMarked(listenerProgram)
	if err != nil || pid == 0 {
		return nil, taskProcess{}, err
	}
	group, err := syscall.Getpgid(pid)
	return nil, taskProcess{running: true, pid: pid, handle: handle{group: group}}, err
}

func (g *groupProcesses) signal(_ context.Context, f taskProcess, sig syscall.Signal, all bool) error {
	target := f.pid
	if all {
		target = -f.handle.group
	}
	if target == 0 || target == -1 {
		return nil
	}
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

func (g *groupProcesses) findWorker(context.Context) (int, error) {
	return g.h.findMarked(workerProgram)
}

func (g *groupProcesses) hasWritten(_ context.Context, _ task, b startRecord, text []byte) bool {
	return g.scan.contains(g.h.runnerLog(), b, text)
}

func (g *groupProcesses) taken(_ context.Context, _ task, b *startRecord) jobline.Job {
	if b == nil {
		return jobline.Job{}
	}
	return g.jobs.taken(g.h.runnerLog(), *b)
}

func (g *groupProcesses) tail(_ context.Context, t task, b startRecord) string {
	if t.name == taskPrepare {
		return tailOf(g.h.path("logs/prepare.log"), b.LogOffset)
	}
	return tailOf(g.h.runnerLog(), b.LogOffset)
}

func (g *groupProcesses) pollInterval() time.Duration { return pollProcesses }

func (g *groupProcesses) removeSecrets() {}

func (g *groupProcesses) endAll() error { return g.h.killAll(endLimit) }

// lock takes the lock of a task.
func (t task) lock() (*os.File, error) {
	lock, free, err := lockWithin(t.path + ".lock")
	if err == nil && !free {
		err = fmt.Errorf("lock %s.lock: %w", t.path, syscall.EWOULDBLOCK)
	}
	return lock, err
}

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/host/tree"
	"github.com/remuda-ci/remuda/internal/proc"
)

// groups is the launcher of the embedded default: each task runs in a process
// group of its own, as the agent's own user. Its files are
//
//	NAME.lock   locked by the process for as long as it lives
//	NAME.pid    its pid, which is also the id of its group
//
// Whoever finds the lock free knows that the process is gone, whatever became
// of the agent that started it; no pid is compared with a remembered one.
type groups struct {
	h    *Host
	scan logScan
}

var _ launcher = (*groups)(nil)

// wrapper runs a command and writes down its pid and its exit code. It holds
// the lock, file descriptor 3, and the command does not. The command must not
// run when its pid cannot be written: nobody could end it.
const wrapper = `echo "$$" >"$1.pid" || exit 126
name=$1
shift
"$@" </dev/null 3>&-
code=$?
echo "$code" >"$name.exit"
`

func (g *groups) start(_ context.Context, t task, b begun, c command) error {
	log, err := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if b.LogOffset, err = log.Seek(0, 2); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := t.intend(b); err != nil {
		return err
	}
	lock, err := t.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", wrapper, "remuda-" + t.name, t.path}, c.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, append(c.env, c.secrets...), log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", t.name, err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in NAME.exit
		g.h.notify()
	}()
	return nil
}

func (g *groups) find(_ context.Context, t task, _ begun) (found, error) {
	held, err := locked(t.path + ".lock")
	if err != nil {
		return found{}, err
	}
	// The order matters: a task writes its pid before it lets go of the lock.
	group := readNumber(t.path + ".pid")
	if !held {
		return found{ended: group > 0, code: codeUnknown}, nil
	}
	f := found{running: true, handle: handle{group: group}}
	if group == 0 {
		return f, nil
	}
	pids, err := proc.Default.Children(group)
	if err == nil && len(pids) > 0 {
		f.pid = pids[0]
	}
	return f, err
}

// adopt looks at every process, so it is only asked when there is reason to.
func (g *groups) adopt(context.Context, bool) (*begun, found, error) {
	pid, err := g.h.findProcess(listenerProgram)
	if err != nil || pid == 0 {
		return nil, found{}, err
	}
	group, err := syscall.Getpgid(pid)
	return nil, found{running: true, pid: pid, handle: handle{group: group}}, err
}

func (g *groups) signal(_ context.Context, f found, sig syscall.Signal, all bool) error {
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

func (g *groups) worker(context.Context) (int, error) { return g.h.findProcess(workerProgram) }

func (g *groups) said(_ context.Context, _ task, b begun, text []byte) bool {
	return g.scan.says(g.h.runnerLog(), b, text)
}

func (g *groups) tail(_ context.Context, t task, b begun) string {
	if t.name == taskPrepare {
		return tailOf(g.h.path("logs/prepare.log"), b.LogOffset)
	}
	return tailOf(g.h.runnerLog(), b.LogOffset)
}

// ready: what the pre-runner script made is wherever the agent's user may write.
func (g *groups) ready(context.Context) error { return nil }

// preparation is the pre-runner script. A command of it that fails makes it
// fail, also in the middle of a pipe.
func (g *groups) preparation() *command {
	h := g.h
	if h.o.PreRunner == "" {
		return nil
	}
	return &command{
		args: []string{"/bin/bash", "-e", "-o", "pipefail", h.o.PreRunner},
		dir:  h.path("work"), env: h.environment(), log: h.path("logs/prepare.log"), limit: h.o.PreRunnerLimit,
	}
}

// startClean cleans within the agent; when that is killed it begins again.
func (g *groups) startClean(_ context.Context, t task, b begun) error {
	if err := t.intend(b); err != nil {
		return err
	}
	lock, err := t.lock()
	if err != nil {
		return err
	}
	go func() {
		_ = g.h.CleanNow(context.Background(), b.Assignment) // which wrote down how it went
		lock.Close()
		g.h.notify()
	}()
	return nil
}

func (g *groups) clean(context.Context) error {
	if err := g.h.killAll(proc.KillLimit); err != nil {
		return err
	}
	for _, dir := range jobDirs {
		if err := tree.Renew(g.h.path(dir), self(), 0o755); err != nil {
			return err
		}
	}
	return g.h.mirrorRunner(self())
}

func (g *groups) check(context.Context) error {
	pids, err := g.h.processes()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("process %d (%s) still runs", pids[0], proc.Default.Program(pids[0]))
	}
	for _, dir := range jobDirs {
		info, err := os.Lstat(g.h.path(dir))
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(g.h.path(dir))
		if err != nil {
			return err
		}
		if !info.IsDir() || len(entries) > 0 {
			return fmt.Errorf("%s is not an empty directory", g.h.path(dir))
		}
	}
	return g.h.checkDisk()
}

func (g *groups) pace() time.Duration { return hurry }

func (g *groups) tidy() {}

func (g *groups) registered() string { return g.h.path("runner") }

func (g *groups) removal() command {
	return command{args: []string{g.h.path("runner/config.sh"), "remove", "--unattended"}, dir: g.h.path("runner"), env: g.h.environment()}
}

func (g *groups) end() error { return g.h.killAll(endLimit) }

func (g *groups) furnish() error {
	h := g.h
	if err := h.makeDirs("work", "home", "tmp", "hooks", "logs", "state/tasks", jobBox); err != nil {
		return err
	}
	if err := h.writeHooks(); err != nil {
		return err
	}
	if h.furnished() {
		return nil
	}
	return h.mirrorRunner(self())
}

// shield makes the files for the secrets of a JIT configuration, so
// that they are nobody else's to read: the runner leaves the mode of a file that
// is there, and would make one that everybody may read.
func (g *groups) shield() error {
	for _, name := range []string{"runner/.credentials", "runner/.credentials_rsaparams"} {
		f, err := os.OpenFile(g.h.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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

// lock takes the lock of a task.
func (t task) lock() (*os.File, error) {
	lock, err := os.OpenFile(t.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockSoon(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return lock, nil
}

package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/host/jobline"
	"github.com/remuda-ci/remuda/internal/proc"
)

// processes starts the tasks of a host so that they outlive the agent, and finds them again. The files of a task record
// that it was started and how it ended. Only processes knows whether it runs, and what it has written.
type processes interface {
	// start starts command c as recorded in r. No earlier process of the task runs.
	start(ctx context.Context, t task, r startRecord, c command) error
	// find looks for the process of a task that was started.
	find(ctx context.Context, t task, r startRecord) (taskProcess, error)
	// adopt finds a listener that the files of its task do not know. unseen says that they know of one whose end was not
	// seen.
	adopt(ctx context.Context, unseen bool) (*startRecord, taskProcess, error)
	// signal sends a signal to the program of a task or, with all, to everything that the task has started.
	signal(ctx context.Context, p taskProcess, sig syscall.Signal, all bool) error
	// findWorker finds the worker of a listener that is gone or cannot be found; 0 if there is none.
	findWorker(ctx context.Context) (pid int, err error)
	// hasWritten reports whether the output of the task contains text.
	hasWritten(ctx context.Context, t task, r startRecord, text []byte) bool
	// taken returns the job that a listener has by its output; r is nil when there is no listener.
	taken(ctx context.Context, t task, r *startRecord) jobline.Job
	// tail returns the end of the task's output, at most tailLimit bytes.
	tail(ctx context.Context, t task, r startRecord) string
	// pollInterval is how soon to look again at a task that runs.
	pollInterval() time.Duration
	// endAll ends all tasks, unless they end with the machine anyway.
	endAll() error
	// removeSecrets removes secrets that a killed agent has left in memory.
	removeSecrets()
}

// taskProcess is the process of a task.
type taskProcess struct {
	// running is true while anything lives that the task has started.
	running bool
	// pid is that of its program; 0 if it is unknown or gone.
	pid int
	// handle identifies it to processes.
	handle handle
	// ended says that it ran and no longer runs. code is how it ended, if its files do not say that.
	ended bool
	code  int
}

// handle is a process group, or the name of a unit.
type handle struct {
	group int
	unit  string
}

// command is what a task runs.
type command struct {
	args []string
	// before runs first: as root under systemd, else as the agent's user. The command runs even if it fails. Empty for nothing.
	before []string
	dir    string
	env    []string
	// secrets are variables of the environment that only the command may see.
	secrets []string
	// log is the file for its output, where there is no journal.
	log string
	// limit is how long it may take; 0 for no limit. systemd enforces it for a unit, and the agent for a process group.
	limit time.Duration
	// root says that it runs as root. It is the operator's command or our own, and no job's.
	root bool
}

// markedProcesses lists the processes that belong to this host, except the agent itself and its ancestors:
// all that carry the host's mark, and all in the session of a marked init that the agent runs under.
func (h *Host) markedProcesses() ([]int, error) {
	pids, _, err := h.scanMarked()
	return pids, err
}

// scanMarked is markedProcesses. unclear is how many others may turn out to be marked: see proc.Environ.
func (h *Host) scanMarked() (pids []int, unclear int, err error) {
	all, err := h.proc.PIDs()
	if err != nil {
		return nil, 0, err
	}
	spared := ancestors()
	session := h.ownSession(spared)
	for _, pid := range all {
		if spared[pid] {
			continue
		}
		ours, clear := h.isMarked(pid)
		switch {
		case ours || (session != 0 && inSession(pid, session)):
			pids = append(pids, pid)
		case !clear:
			unclear++
		}
	}
	return pids, unclear, nil
}

// ancestors returns this process and those it descends from.
func ancestors() map[int]bool {
	up := map[int]bool{os.Getpid(): true}
	line, _ := proc.Default.Lineage(os.Getpid()) // as far as it can be read
	for _, p := range line {
		up[p.PID] = true
	}
	return up
}

// ownSession returns the session that the agent shares with the host's init. It is 0 if
// something else started the agent: that session is not ours to end.
func (h *Host) ownSession(ancestors map[int]bool) int {
	session := sessionOf(os.Getpid())
	if session <= 0 || !ancestors[session] {
		return 0
	}
	if marked, _ := h.isMarked(session); !marked {
		return 0
	}
	return session
}

// isMarked reports whether the process was started with this host's mark. clear is false
// while that cannot be seen: see proc.Environ.
func (h *Host) isMarked(pid int) (marked, clear bool) {
	if h.o.InstanceID == "" {
		return false, true // before SetIdentity no process has been marked
	}
	environ, clear := h.proc.Environ(pid)
	mark := []byte(InstanceIDVariable + "=" + h.o.InstanceID + "\x00")
	return bytes.HasPrefix(environ, mark) || bytes.Contains(environ, append([]byte{0}, mark...)), clear
}

// findMarked finds a process of this host by its program; 0 if there is none.
func (h *Host) findMarked(program string) (int, error) {
	pids, err := h.markedProcesses()
	return firstOf(pids, program), err
}

// inSession reports whether a living process belongs to the session. It asks the kernel first: the
// scan looks at every process of the machine, and only few have to be read from /proc then.
func inSession(pid, session int) bool {
	if id, err := unix.Getsid(pid); err == nil && id != session {
		return false
	}
	return sessionOf(pid) == session
}

// sessionOf is the session of a living process; 0 for a dead one.
func sessionOf(pid int) int {
	if s, err := proc.Default.Stat(pid); err == nil && !s.Dead() {
		return s.Session
	}
	return 0
}

// notifyAtExit notifies Changed as soon as a process ends: after a release the listener must be stopped
// before it takes another job. If pidfd_open fails, polling notices the end.
func (h *Host) notifyAtExit(pid int) {
	if h.watchedWorker.Swap(int64(pid)) == int64(pid) {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		h.notify()
		return
	}
	go func() {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		h.watchedWorker.CompareAndSwap(int64(pid), 0)
		h.notify()
	}()
}

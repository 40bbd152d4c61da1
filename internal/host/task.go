package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// task is something that runs in a process group of its own and outlives the
// agent. Its files are
//
//	NAME.json   what was begun, written before it
//	NAME.lock   locked by the process for as long as it lives
//	NAME.pid    its pid, which is also the id of its group
//	NAME.exit   its exit code, or overdue
//
// Whoever finds the lock free knows that the process is gone, whatever became
// of the agent that started it; no pid is compared with a remembered one.
type task struct {
	path string // without the extension
}

// The tasks of a host.
const (
	taskPrepare    = "prepare"
	taskRegister   = "register"
	taskListen     = "listen"
	taskDeregister = "deregister"
	taskClean      = "clean"
)

func (h *Host) task(name string) task { return task{path: h.path("state/tasks", name)} }

// begun is NAME.json.
type begun struct {
	Assignment int64                      `json:"assignment"`
	Attempt    int                        `json:"attempt"`
	BootID     string                     `json:"bootId"`
	BegunAt    time.Time                  `json:"begunAt"`
	Kind       lifecycle.RegistrationKind `json:"kind,omitempty"`
	// LogOffset is where its output begins in its log.
	LogOffset int64 `json:"logOffset"`
}

// standing is how a task stands. Without begun it never was, or it was never
// really started, or what is written of it is unreadable.
type standing struct {
	begun   *begun
	running bool
	ended   bool
	pid     int // of a running one, once known
	code    int // of an ended one; codeUnknown, codeOverdue
	endedAt time.Time
}

const (
	codeUnknown = -1
	codeOverdue = -2
	// overdue stands in NAME.exit for a task that was killed at its limit.
	overdue = "overdue"
)

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

// command is what a task runs.
type command struct {
	args []string
	dir  string
	env  []string
	log  string
}

// begin starts the task. One that runs already is left alone.
func (h *Host) begin(name string, b begun, c command) error {
	t := h.task(name)
	s, err := t.look()
	if err != nil || s.running {
		return err
	}
	log, err := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if b.LogOffset, err = log.Seek(0, 2); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	lock, err := t.intend(h.numbered(b, s))
	if err != nil {
		return err
	}
	defer lock.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", wrapper, "remuda-" + name, t.path}, c.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in NAME.exit
		h.notify()
	}()
	return nil
}

// numbered fills in what every task has.
func (h *Host) numbered(b begun, before standing) begun {
	b.BootID, b.BegunAt, b.Attempt = h.bootID, time.Now().UTC(), 1
	if before.begun != nil && before.begun.Assignment == b.Assignment {
		b.Attempt += before.begun.Attempt
	}
	return b
}

// intend writes down what is about to begin and returns the lock, held.
func (t task) intend(b begun) (*os.File, error) {
	for _, ext := range []string{".exit", ".pid"} {
		if err := os.Remove(t.path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if err := writeFile(t.path+".json", data); err != nil {
		return nil, err
	}
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

// lockTries and lockPause bound the wait for a lock that is free but for a
// moment: a process that is just being started holds all that is open, and one
// that was killed does until the kernel has closed it. Two seconds are far more
// than that takes on a machine that has anything else to do.
const (
	lockTries = 2000
	lockPause = time.Millisecond
)

func lockSoon(f *os.File) (err error) {
	for range lockTries {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(lockPause)
	}
	return err
}

// look says how the task stands.
func (t task) look() (standing, error) {
	var s standing
	data, err := readFile(t.path + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var b begun
	if json.Unmarshal(data, &b) != nil {
		return s, nil // damaged: as if it were not there
	}
	held, err := locked(t.path + ".lock")
	if err != nil {
		return s, err
	}
	// The order matters: a task writes its code before it lets go of the lock.
	s.pid = readNumber(t.path + ".pid")
	if held {
		s.begun, s.running = &b, true
		return s, nil
	}
	s.code, s.endedAt, s.ended = t.exit()
	if !s.ended && s.pid > 0 {
		s.ended, s.code, s.endedAt = true, codeUnknown, b.BegunAt
	}
	if s.ended {
		s.begun = &b
	}
	return s, nil
}

// exit reads NAME.exit. An empty one was not written to its end.
func (t task) exit() (code int, at time.Time, ended bool) {
	data, err := readFile(t.path + ".exit")
	if err != nil {
		return 0, time.Time{}, false
	}
	if info, err := os.Stat(t.path + ".exit"); err == nil {
		at = info.ModTime()
	}
	text := strings.TrimSpace(string(data))
	if text == overdue {
		return codeOverdue, at, true
	}
	code, err = strconv.Atoi(text)
	return code, at, err == nil
}

// enforce kills a running task that is past its limit.
func (t task) enforce(s standing, limit time.Duration) (standing, error) {
	if !s.running || s.pid <= 0 || time.Since(s.begun.BegunAt) < limit {
		return s, nil
	}
	if err := syscall.Kill(-s.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return s, fmt.Errorf("kill overdue task: %w", err)
	}
	// Where this cannot be written the task counts as killed, which it was.
	_ = os.WriteFile(t.path+".exit", []byte(overdue), 0o644)
	s.running, s.ended, s.code, s.endedAt = false, true, codeOverdue, time.Now()
	return s, nil
}

// forget removes what is written of a task that has ended.
func (t task) forget() error {
	for _, ext := range []string{".json", ".exit", ".pid", ".stop"} {
		if err := os.Remove(t.path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// locked reports whether somebody holds the lock on the file.
func locked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("test lock %s: %w", path, err)
	}
	return false, nil
}

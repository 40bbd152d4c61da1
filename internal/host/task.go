package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// task is something that runs on the host and outlives the agent. Its files are
//
//	NAME.json   its startRecord, written before it starts
//	NAME.exit   its exit code, or overdue
//
// and those of processes.
type task struct {
	name string
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

func (h *Host) task(name string) task { return task{name: name, path: h.path("state/tasks", name)} }

// startRecord is the content of NAME.json.
type startRecord struct {
	Assignment int64                      `json:"assignment"`
	Attempt    int                        `json:"attempt"`
	BootID     string                     `json:"bootId"`
	BegunAt    time.Time                  `json:"begunAt"`
	Kind       lifecycle.RegistrationKind `json:"kind,omitempty"`
	// Host and RunBefore are of a clean-up, for its statement: see statement.Reset.
	Host      string `json:"host,omitempty"`
	RunBefore string `json:"runBefore,omitempty"`
	// KeepCaches is of a clean-up too: see agent.CleanUp.
	KeepCaches string `json:"keepCaches,omitempty"`
	// NewRoot is of a clean-up too.
	NewRoot bool `json:"newRoot,omitempty"`
	// LogOffset is where its output begins in its log.
	LogOffset int64 `json:"logOffset"`
	// Started says that its start was seen, so that a unit that is gone without NAME.exit has ended: systemd
	// 252 forgets ExecStopPost= of a transient unit when it is reloaded, as the upgrade of a package does.
	Started bool `json:"started,omitempty"`
}

// taskStatus is the state of a task. start is nil if the task was never started, not
// even begun to start, or if its record is unreadable.
type taskStatus struct {
	taskProcess
	start   *startRecord
	endedAt time.Time
}

const (
	codeUnknown = agent.CodeUnknown
	codeOverdue = -2
	// overdue is the content of NAME.exit for a task that was killed at its limit.
	overdue = "overdue"
)

// startTask starts a task. One that runs already is left alone.
func (h *Host) startTask(ctx context.Context, name string, b startRecord, c command) error {
	t := h.task(name)
	s, err := h.taskStatus(ctx, t)
	if err != nil || s.running {
		return err
	}
	return h.processes.start(ctx, t, h.nextAttempt(b, s), c)
}

// nextAttempt fills in the fields that are the same for every task.
func (h *Host) nextAttempt(b startRecord, before taskStatus) startRecord {
	b.BootID, b.BegunAt, b.Attempt = h.bootID, time.Now().UTC(), 1
	if before.start != nil && before.start.Assignment == b.Assignment {
		b.Attempt += before.start.Attempt
	}
	return b
}

// recordStart writes what is about to start, and removes what is left of the last start.
func (t task) recordStart(b startRecord) error {
	if err := removeFiles(t.path+".exit", t.path+".pid"); err != nil {
		return err
	}
	return t.writeStart(b)
}

func (t task) writeStart(b startRecord) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return writeFile(t.path+".json", data)
}

// taskStatus returns the state of a task.
func (h *Host) taskStatus(ctx context.Context, t task) (taskStatus, error) {
	b, err := t.readStart()
	if err != nil || b == nil {
		return taskStatus{}, err
	}
	// The order matters: a task writes its exit code before it counts as gone.
	f, err := h.processes.find(ctx, t, *b)
	if err != nil {
		return taskStatus{}, err
	}
	s := taskStatus{taskProcess: f}
	if s.running {
		s.start = b
		return s, nil
	}
	code, at, wrote := t.readExit()
	switch {
	case wrote:
		s.start, s.ended, s.code, s.endedAt = b, true, code, at
	case f.ended:
		s.start, s.endedAt = b, b.BegunAt
	}
	return s, nil
}

// readStart reads NAME.json. It returns nil if that is missing or damaged.
func (t task) readStart() (*startRecord, error) {
	data, err := safefile.Read(t.path + ".json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var b startRecord
	if json.Unmarshal(data, &b) != nil { // also if there is none
		return nil, nil
	}
	return &b, nil
}

// readExit reads NAME.exit. An empty one was not written completely.
func (t task) readExit() (code int, at time.Time, ended bool) {
	data, err := safefile.Read(t.path + ".exit")
	text := strings.TrimSpace(string(data))
	if err != nil || text == "" {
		return 0, time.Time{}, false
	}
	if info, err := os.Stat(t.path + ".exit"); err == nil {
		at = info.ModTime()
	}
	if text == overdue {
		return codeOverdue, at, true
	}
	code, err = strconv.Atoi(text)
	if err != nil {
		code = codeUnknown // the name of the signal that killed it
	}
	return code, at, true
}

// enforceLimit kills a running task that is past its limit.
func (h *Host) enforceLimit(ctx context.Context, t task, s taskStatus, limit time.Duration) (taskStatus, error) {
	if !s.running || s.handle == (handle{}) || time.Since(s.start.BegunAt) < limit {
		return s, nil
	}
	if err := h.processes.signal(ctx, s.taskProcess, syscall.SIGKILL, true); err != nil {
		return s, fmt.Errorf("kill overdue task: %w", err)
	}
	// If this cannot be written the task counts as killed, which is true too.
	_ = os.WriteFile(t.path+".exit", []byte(overdue), 0o644)
	s.running, s.ended, s.code, s.endedAt = false, true, codeOverdue, time.Now()
	return s, nil
}

// removeFiles removes the files of a task that has ended.
func (t task) removeFiles() error {
	return removeFiles(t.path+".json", t.path+".exit", t.path+".pid", t.path+".stop")
}

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// The names of the runner's programs.
const (
	listenerProgram = "Runner.Listener"
	workerProgram   = "Runner.Worker"
)

// listening is the line of the runner's output that says that it is ready. Those about its jobs are read by package jobline.
var listening = []byte("Listening for Jobs")

// Listen starts the listener itself, since run.sh would hide its exit codes. It does
// nothing if a listener runs.
func (h *Host) Listen(ctx context.Context, a agent.Assignment) error {
	if f, err := h.listener(ctx); err != nil || f.pid != 0 {
		return err
	}
	c := command{
		args:   []string{h.path("runner/bin", listenerProgram), "run"},
		before: h.attachCommand(a),
		dir:    h.path("runner"), env: append(h.environment(), h.cacheVariables(a)...), log: h.runnerLog(),
	}
	if a.Registration.Kind == lifecycle.RegistrationJIT && a.Registration.Secret != "" {
		if err := h.layout.protectCredentials(); err != nil {
			return fmt.Errorf("start listener: %w", err)
		}
		c.secrets = []string{inputPrefix + "JITCONFIG=" + a.Registration.Secret.Reveal()}
	}
	if err := removeFiles(h.path("state/tasks/listen.stop")); err != nil {
		return fmt.Errorf("start listener: %w", err)
	}
	if err := h.startTask(ctx, taskListen, startRecord{Assignment: a.Number}, c); err != nil {
		return fmt.Errorf("start listener: %w", err)
	}
	return nil
}

// Stop asks the listener to end, by the signal that ctrl-c sends. The second time it kills everything that
// the listener has started. It does nothing while there is a worker, whose job would die too, or a
// job that the listener has taken and given to no worker yet: GitHub would wait for that one until its lock runs out.
func (h *Host) Stop(ctx context.Context) error {
	f, err := h.listenerStatus(ctx)
	if err != nil || f.pid == 0 {
		return err
	}
	if worker, err := h.workerOf(f.pid); err != nil || worker != 0 || h.hasTaken(ctx, f) {
		return err
	}
	t := h.task(taskListen)
	marker, sig, all := t.path+".stop", syscall.SIGINT, false
	if exists(marker) {
		sig, all = syscall.SIGKILL, true
	} else if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return fmt.Errorf("stop listener: %w", err)
	}
	if err := h.processes.signal(ctx, f.taskProcess, sig, all); err != nil {
		return fmt.Errorf("stop listener: %w", err)
	}
	return nil
}

// listener finds the running listener; its pid is 0 if there is none.
func (h *Host) listener(ctx context.Context) (taskProcess, error) {
	st, err := h.listenerStatus(ctx)
	return st.taskProcess, err
}

// listenerStatus returns the status of the listener's task, or of a listener that the
// task's files do not know because they are lost or its wrapper was killed.
func (h *Host) listenerStatus(ctx context.Context) (taskStatus, error) {
	st, err := h.taskStatus(ctx, h.task(taskListen))
	if err != nil || st.running || !exists(h.path("runner/.runner")) {
		return st, err
	}
	wentUnseen := st.start != nil && st.code == codeUnknown
	if registered, err := h.taskStatus(ctx, h.task(taskRegister)); err != nil || (registered.start != nil && !wentUnseen) {
		return st, err
	}
	b, f, err := h.processes.adopt(ctx, wentUnseen)
	if err != nil || !f.running {
		return st, err
	}
	st.taskProcess.pid, st.handle, st.running = f.pid, f.handle, true
	if b != nil {
		st.start = b
		// This is recorded so that its end will be known. Otherwise it is not.
		_ = h.task(taskListen).recordStart(*b)
	}
	return st, nil
}

// observeListener reads the state of the listener and of its worker.
func (h *Host) observeListener(ctx context.Context, s *agent.Observed) error {
	st, err := h.listenerStatus(ctx)
	if err != nil {
		return fmt.Errorf("read state of listener: %w", err)
	}
	l := &s.Listener
	if st.start != nil {
		l.Assignment, l.StartedAt, l.At = st.start.Assignment, st.start.BegunAt, st.start.BegunAt
	} else {
		l.Assignment, l.StartedAt, l.At = s.Registered.Assignment, s.Registered.At, s.Registered.At
	}
	switch {
	case st.running:
		l.Phase = h.phaseOfRunning(ctx, st, l)
	case st.ended:
		l.Phase, l.Code, l.At = agent.ListenerExited, st.code, st.endedAt
		l.Unconfigured = missing(h.path("runner/.runner"))
		l.Listened = h.processes.hasWritten(ctx, h.task(taskListen), *st.start, listening)
		l.Detail = h.processes.tail(ctx, h.task(taskListen), *st.start)
	default:
		*l = agent.Listener{}
	}
	return h.observeWorker(ctx, s, st)
}

func (h *Host) phaseOfRunning(ctx context.Context, st taskStatus, l *agent.Listener) agent.ListenerPhase {
	t := h.task(taskListen)
	if info, err := os.Stat(t.path + ".stop"); err == nil {
		l.At = info.ModTime()
		return agent.ListenerStopping
	}
	// A listener whose start is unknown has been running for long.
	if st.start == nil || h.processes.hasWritten(ctx, t, *st.start, listening) {
		return agent.ListenerListening
	}
	l.Detail = h.processes.tail(ctx, t, *st.start)
	return agent.ListenerStarting
}

// observeWorker reads whether a job runs. The listener's output shows its begin first, then the
// hook's marker. Only the end of the worker shows its end.
func (h *Host) observeWorker(ctx context.Context, s *agent.Observed, listener taskStatus) error {
	orphaned := s.Listener.Phase == agent.ListenerExited && s.Listener.Code == codeUnknown
	worker, err := h.findLivingWorker(ctx, listener.pid, orphaned)
	if err != nil {
		return fmt.Errorf("find worker: %w", err)
	}
	s.RefusedWorker = h.observeRefusal(worker)
	if s.Busy = worker != 0; s.Busy {
		h.sawWorker(ctx, listener)
		h.notifyAtExit(worker)
		return nil
	}
	if s.Taken = h.hasTaken(ctx, listener); s.Taken {
		s.Busy = true
		return nil
	}
	if h.hasBusyMarker() {
		// Its worker was killed. If the marker cannot be removed, the worker is
		// looked for again each time, which only costs time.
		_ = removeFiles(h.path(markBusy))
	}
	return nil
}

// findLivingWorker finds the worker of the listener, or one that outlived its listener if there may be one; 0 if there is none.
func (h *Host) findLivingWorker(ctx context.Context, listener int, orphaned bool) (worker int, err error) {
	if listener != 0 {
		worker, err = h.workerOf(listener)
	}
	if err == nil && worker == 0 && (h.hasBusyMarker() || orphaned) {
		worker, err = h.processes.findWorker(ctx)
	}
	return worker, err
}

// workerOf finds the worker among the listener's children; 0 if there is none.
func (h *Host) workerOf(listener int) (int, error) {
	pids, err := proc.Default.Children(listener)
	return firstOf(pids, workerProgram), err
}

// firstOf returns the first process that was started by the name of a program; 0 if there is none.
func firstOf(pids []int, program string) int {
	for _, pid := range pids {
		if proc.Default.Program(pid) == program {
			return pid
		}
	}
	return 0
}

// currentWorker finds the worker of the running listener; 0 if there is none.
func (h *Host) currentWorker(ctx context.Context) (int, error) {
	f, err := h.listener(ctx)
	if err != nil || f.pid == 0 {
		return 0, err
	}
	return h.workerOf(f.pid)
}

// logScan searches a log that is still being written for a text. It reads what is new in
// chunks of fixed size, whatever the length of the lines.
type logScan struct {
	start  startRecord
	offset int64
	found  bool
}

// scanChunk bounds the memory of a scan, in bytes.
const scanChunk = 64 << 10

func (c *logScan) contains(path string, b startRecord, text []byte) bool {
	if c.start != b {
		*c = logScan{start: b, offset: b.LogOffset}
	}
	if c.found {
		return true
	}
	f, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == c.offset {
		return false
	} else if info.Size() < c.offset {
		c.offset = 0 // it was truncated
	}
	buf := make([]byte, scanChunk)
	for {
		n, err := f.ReadAt(buf, c.offset)
		if bytes.Contains(buf[:n], text) {
			c.found = true
			return true
		}
		if n < len(buf) || (err != nil && !errors.Is(err, io.EOF)) {
			c.offset += int64(max(0, n-len(text)))
			return false
		}
		// The text may lie across the end of the chunk.
		c.offset += int64(n - len(listening))
	}
}

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// listening is the one line of the runner's output that is read.
var listening = []byte("Listening for Jobs")

// Listen starts the listener itself: run.sh would hide its exit codes. It is
// not started beside one that runs.
func (h *Host) Listen(_ context.Context, a agent.Assignment) error {
	if pid, _, err := h.listenerPID(); err != nil || pid != 0 {
		return err
	}
	env := h.environment()
	if a.Registration.Kind == lifecycle.RegistrationJIT && a.Registration.Secret != "" {
		if err := h.shieldCredentials(); err != nil {
			return fmt.Errorf("start listener: %w", err)
		}
		env = append(env, inputPrefix+"JITCONFIG="+a.Registration.Secret.Reveal())
	}
	if err := h.removeFile("state/tasks/listen.stop"); err != nil {
		return fmt.Errorf("start listener: %w", err)
	}
	err := h.begin(taskListen, begun{Assignment: a.Number}, command{
		args: []string{h.path("runner/bin/Runner.Listener"), "run"},
		dir:  h.path("runner"), env: env, log: h.runnerLog(),
	})
	if err != nil {
		return fmt.Errorf("start listener: %w", err)
	}
	return nil
}

// shieldCredentials makes the files for the secrets of a JIT configuration, so
// that they are nobody else's to read: the runner leaves the mode of a file that
// is there, and would make one that everybody may read.
func (h *Host) shieldCredentials() error {
	for _, name := range []string{"runner/.credentials", "runner/.credentials_rsaparams"} {
		f, err := os.OpenFile(h.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("shield credentials: %w", err)
		}
	}
	return nil
}

// Stop asks the listener to end, by the signal that ctrl-c sends; the second
// time it kills its process group. A worker's job would die with it, so it is
// left alone while there is one.
func (h *Host) Stop(context.Context) error {
	pid, group, err := h.listenerPID()
	if err != nil || pid == 0 {
		return err
	}
	if worker, err := h.worker(pid); err != nil || worker != 0 {
		return err
	}
	marker, sig, target := h.task(taskListen).path+".stop", syscall.SIGINT, pid
	if exists(marker) {
		sig, target = syscall.SIGKILL, -group
	} else if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return fmt.Errorf("stop listener: %w", err)
	}
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop listener: %w", err)
	}
	return nil
}

// listenerPID finds the listener that runs; 0 when there is none. group is the
// process group to kill it with.
func (h *Host) listenerPID() (pid, group int, err error) {
	st, err := h.task(taskListen).look()
	if err != nil {
		return 0, 0, err
	}
	return h.listenerOf(st)
}

func (h *Host) listenerOf(st standing) (pid, group int, err error) {
	if st.running && st.pid != 0 {
		pids, err := childrenOf(st.pid)
		if err != nil || len(pids) == 0 {
			return 0, 0, err
		}
		return pids[0], st.pid, nil
	}
	if pid, err = h.strayListener(st); err != nil || pid == 0 {
		return 0, 0, err
	}
	group, err = syscall.Getpgid(pid)
	return pid, group, err
}

// strayListener finds a listener of this host that its task does not know,
// because its wrapper was killed or the task's files are lost. It costs a look
// at every process, so it is only asked when there is reason to.
func (h *Host) strayListener(st standing) (int, error) {
	if st.running || !exists(h.path("runner/.runner")) {
		return 0, nil
	}
	wentUnseen := st.ended && st.code == codeUnknown
	if registered, err := h.task(taskRegister).look(); err != nil || (registered.begun != nil && !wentUnseen) {
		return 0, err
	}
	return h.findProcess("Runner.Listener")
}

// lookAtListener tells of the listener and of its worker.
func (h *Host) lookAtListener(s *agent.Scene) error {
	st, err := h.task(taskListen).look()
	if err != nil {
		return fmt.Errorf("look at listener: %w", err)
	}
	pid, _, err := h.listenerOf(st)
	if err != nil {
		return fmt.Errorf("look at listener: %w", err)
	}
	l := &s.Listener
	if st.begun != nil {
		l.Assignment, l.StartedAt, l.At = st.begun.Assignment, st.begun.BegunAt, st.begun.BegunAt
	} else {
		l.Assignment, l.StartedAt, l.At = s.Registered.Assignment, s.Registered.At, s.Registered.At
	}
	switch {
	case st.running || pid != 0:
		l.Phase = h.phaseOfLiving(st, l)
	case st.ended:
		l.Phase, l.Code, l.At = agent.ListenerExited, st.code, st.endedAt
		l.Listened = h.scan.says(h.runnerLog(), *st.begun)
		l.Detail = tailOf(h.runnerLog(), st.begun.LogOffset)
	default:
		*l = agent.Listener{}
	}
	return h.lookForWorker(s, pid)
}

func (h *Host) phaseOfLiving(st standing, l *agent.Listener) agent.ListenerPhase {
	if info, err := os.Stat(h.task(taskListen).path + ".stop"); err == nil {
		l.At = info.ModTime()
		return agent.ListenerStopping
	}
	// One whose start is not known has been there for long.
	if st.begun == nil || h.scan.says(h.runnerLog(), *st.begun) {
		return agent.ListenerListening
	}
	l.Detail = tailOf(h.runnerLog(), st.begun.LogOffset)
	return agent.ListenerStarting
}

// lookForWorker says whether a job runs. The hook's marker says it first; that
// it is over is said by the end of the worker alone.
func (h *Host) lookForWorker(s *agent.Scene, listener int) error {
	var worker int
	var err error
	if listener != 0 {
		worker, err = h.worker(listener)
	}
	orphaned := s.Listener.Phase == agent.ListenerExited && s.Listener.Code == codeUnknown
	if err == nil && worker == 0 && (h.marked() || orphaned) {
		worker, err = h.findProcess("Runner.Worker")
	}
	if err != nil {
		return fmt.Errorf("look for worker: %w", err)
	}
	if s.Busy = worker != 0; s.Busy {
		h.watch(worker)
		return nil
	}
	if h.marked() {
		// Its worker was killed. Where the marker cannot be removed it is
		// looked into again, which only takes time.
		_ = h.removeFile("state/job/busy")
	}
	return nil
}

// worker finds the worker among the listener's children; 0 when there is none.
func (h *Host) worker(listener int) (int, error) {
	pids, err := childrenOf(listener)
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if programOf(pid) == "Runner.Worker" {
			return pid, nil
		}
	}
	return 0, nil
}

// livingWorker finds the worker of the listener that runs; 0 when there is none.
func (h *Host) livingWorker() (int, error) {
	pid, _, err := h.listenerPID()
	if err != nil || pid == 0 {
		return 0, err
	}
	return h.worker(pid)
}

func (h *Host) removeFile(name string) error {
	if err := os.Remove(h.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// logScan looks for the line in a log that is still being written. It reads
// what is new in pieces of fixed size, whatever the length of its lines.
type logScan struct {
	begun  begun
	offset int64
	found  bool
}

// scanChunk bounds the memory of a scan, in bytes.
const scanChunk = 64 << 10

func (c *logScan) says(path string, b begun) bool {
	if c.begun != b {
		*c = logScan{begun: b, offset: b.LogOffset}
	}
	if c.found {
		return true
	}
	f, err := openPlain(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == c.offset {
		return false
	} else if info.Size() < c.offset {
		c.offset = 0 // somebody cut it
	}
	buf := make([]byte, scanChunk)
	for {
		n, err := f.ReadAt(buf, c.offset)
		if bytes.Contains(buf[:n], listening) {
			c.found = true
			return true
		}
		if n < len(buf) || (err != nil && !errors.Is(err, io.EOF)) {
			c.offset += int64(max(0, n-len(listening)))
			return false
		}
		// The line may lie across the end of the piece.
		c.offset += int64(n - len(listening))
	}
}

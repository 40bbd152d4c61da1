package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// Exit codes of the worker: 100 and the result of its job, as in actions/runner.
const (
	workerSucceeded = 100
	workerFailed    = 102
	workerCanceled  = 103
)

// What the listener writes to a worker after the job. The end of its input means that the listener is gone.
const (
	tellCancel   = "cancel\n"
	tellShutdown = "shutdown\n"
)

// workerProcess is the process of one job.
type workerProcess struct {
	job   protocol.Job
	cmd   *exec.Cmd
	input io.WriteCloser
	said  output
	ended chan struct{}
}

// output keeps the end of what a worker writes to its standard error.
type output struct {
	mu   sync.Mutex
	text []byte
}

// outputLimit is how many bytes an output keeps.
const outputLimit = 4 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-outputLimit):]
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text))
}

// outputTime is how long the output of a worker that has ended may still be held open by others.
const outputTime = time.Second

// startWorker hands the job over on standard input: it has a secret in it.
func startWorker(root string, job protocol.Job, errOut io.Writer) (*workerProcess, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	w := &workerProcess{job: job, cmd: exec.Command(filepath.Join(root, "bin", "Runner.Worker")), ended: make(chan struct{})}
	w.cmd.Dir, w.cmd.Env, w.cmd.Stderr, w.cmd.WaitDelay = root, os.Environ(), io.MultiWriter(errOut, &w.said), outputTime
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	go func() {
		// How it ended is read off the exit code.
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	w.tell(string(text) + "\n")
	return w, nil
}

// cancelTime is what a canceled job has to end before its worker is killed: five minutes, unless the server says otherwise
// (actions/runner 2.336, src/Runner.Listener/JobDispatcher.cs:660).
const cancelTime = 5 * time.Minute

// tell writes to the worker. An error is ignored: a worker that has just ended needs no message. A worker that is asked to cancel
// its job may still run steps whose condition holds for a canceled job, within cancelTime.
func (w *workerProcess) tell(text string) {
	_, _ = io.WriteString(w.input, text)
	if text == tellCancel {
		// A worker that has ended by then has no process to kill.
		time.AfterFunc(cancelTime, func() { _ = w.cmd.Process.Kill() })
	}
}

// done is closed when the worker has ended.
func (w *workerProcess) done() <-chan struct{} { return w.ended }

func (w *workerProcess) exitCode() int { return w.cmd.ProcessState.ExitCode() }

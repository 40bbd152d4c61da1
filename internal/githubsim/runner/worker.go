package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

// completeTime is how long a worker tries to hand in its result. Longer than any restart of the stand-in.
const completeTime = 10 * time.Minute

// Why a job is ended before its steps are.
const (
	errCanceled = message("The operation was canceled.")
	errShutdown = message("The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.")
	errLost     = message("The job is not this runner's any more.")
)

// worker runs one job.
type worker struct {
	root      string
	settings  runnerfiles.Settings
	job       protocol.Job
	report    *reporter
	tracking  string            // in the environment of every process of the job
	environ   map[string]string // what every step starts from
	jobEnv    map[string]string // env of the workflow and the job, and what steps wrote to GITHUB_ENV
	workspace string
	temp      string
	progress  []protocol.StepState
	status    string      // of the job so far: success, failure or cancelled
	stopping  atomic.Bool // the runner itself stops: no step begins any more

	posts      []entry                   // registered by what has run; the last one runs first
	registered map[int]bool              // the steps whose post script is among posts, by number
	saved      map[int]map[string]string // what the steps of actions have saved for their post script, by number

	// Of the running step: closed when the job ends, nil if it had ended before; and whether the step goes on then.
	ended    <-chan struct{}
	outlives func() bool

	image     string // of the job's container; empty for none
	contained bool   // the container has been started
}

// work is the worker process: the job comes on the first line of in, then what the listener has to tell. It returns the
// exit code.
func work(root string, environ []string, in io.Reader, errOut io.Writer) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A worker leaves ctrl-c to its listener (actions/runner 2.336, src/Runner.Worker/Program.cs:26).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		fmt.Fprintln(errOut, "read job:", err)
		return exitTerminatedError
	}
	w := &worker{root: root, tracking: "github_" + uuid.NewString()}
	if err := json.Unmarshal(first, &w.job); err != nil {
		fmt.Fprintln(errOut, "decode job:", err)
		return exitTerminatedError
	}
	if w.settings, _, err = runnerfiles.Load(root); err != nil {
		fmt.Fprintln(errOut, "load configuration:", err)
		return exitTerminatedError
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	stop := func(why error) {
		w.stopping.Store(true)
		end(why)
	}
	go heed(lines, end, stop)
	c := newClient(w.settings.ServerURL, w.job.Token)
	w.report = newReporter(c, w.job.ID, func() { stop(errLost) })
	conclusion := w.run(ctx, environ)
	w.report.close()
	if w.stopping.Load() {
		time.Sleep(durationOf(environ, stopTimeVariable, 0))
	}
	if err := completeJob(c, w.job.ID, protocol.Complete{Conclusion: conclusion}); err != nil {
		fmt.Fprintf(errOut, "%s: Cannot complete job %s: %v\n", now(), w.job.Name, err)
	}
	switch conclusion {
	case "success":
		return workerSucceeded
	case "cancelled":
		return workerCanceled
	}
	return workerFailed
}

// heed cancels the job when the listener says so, and stops the worker when the listener says that or is gone, or on SIGTERM.
func heed(lines *bufio.Reader, cancel, stop func(error)) {
	terminated := exitOnSIGTERM()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			line, err := lines.ReadString('\n')
			if err != nil || line != tellCancel {
				return
			}
			cancel(errCanceled)
		}
	}()
	select {
	case <-terminated:
	case <-gone:
	}
	stop(errShutdown)
}

func completeJob(c *client, id int64, q protocol.Complete) error {
	return insist(context.Background(), completeTime, func() error {
		_, err := c.call(context.Background(), callTime, "POST", fmt.Sprintf(protocol.PathComplete, id), nil, q, nil)
		return err
	})
}

// run goes through the job and returns its conclusion.
func (w *worker) run(ctx context.Context, environ []string) string {
	w.status = "success"
	w.begin("Set up job")
	w.logf("Current runner version: '%s'\nRunner name: '%s'\nMachine name: '%s'\nJob name: %s\n", versionOf(w.root), w.settings.AgentName, hostname(), w.job.Name)
	err := w.prepare(environ)
	w.end(err)
	defer w.cleanUp()
	if err == nil {
		w.runSteps(ctx)
	}
	w.begin("Complete job")
	w.logf("Cleaning up orphan processes\n")
	for _, p := range killTracked(w.tracking) {
		w.logf("Terminate orphan process: pid (%d) (%s)\n", p.pid, p.name)
	}
	w.end(nil)
	return w.status
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

func (w *worker) logf(format string, args ...any) { fmt.Fprintf(w.report, format, args...) }

// prepare makes the directories of the job. The workspace is left as the last job left it, as actions/runner does.
func (w *worker) prepare(environ []string) error {
	work := w.settings.WorkFolder
	if !filepath.IsAbs(work) {
		work = filepath.Join(w.root, work)
	}
	_, name, _ := strings.Cut(expr.Text(w.job.GitHub["repository"]), "/")
	w.workspace, w.temp = filepath.Join(work, name, name), filepath.Join(work, "_temp")
	if err := os.RemoveAll(w.temp); err != nil {
		return fmt.Errorf("clean temporary directory: %w", err)
	}
	for _, dir := range []string{w.workspace, filepath.Join(work, "_tool"), filepath.Join(w.temp, commandDir), filepath.Join(w.temp, eventDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make job directories: %w", err)
		}
	}
	w.job.GitHub["workspace"] = w.workspace
	w.jobEnv = w.job.Env
	if w.jobEnv == nil {
		w.jobEnv = map[string]string{}
	}
	w.environ = w.defaults(environ, work)
	w.registered, w.saved = map[int]bool{}, map[int]map[string]string{}
	var err error
	if len(w.job.Steps) > 0 && len(w.job.Steps[0].Container) > 0 {
		w.image, err = w.job.Steps[0].Container.Render(w.contexts(nil))
	}
	if err != nil {
		return fmt.Errorf("evaluate container: %w", err)
	}
	return w.writeEvent()
}

// writeEvent writes the payload of the event that started the run, before the hooks, which find it too
// (actions/runner 2.336, src/Runner.Worker/ExecutionContext.cs 1320-1336, JobHookProvider.cs 54).
func (w *worker) writeEvent() error {
	event, err := json.MarshalIndent(w.job.GitHub["event"], "", "  ")
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.temp, eventDir, "event.json"), event, 0o644); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}

func (w *worker) cleanUp() {
	if w.temp == "" {
		return
	}
	if err := os.RemoveAll(w.temp); err != nil {
		w.logf("##[warning]Cannot clean the temporary directory: %v\n", err)
	}
}

// begin opens the next step in the job's progress.
func (w *worker) begin(name string) {
	at := time.Now().UTC()
	w.progress = append(w.progress, protocol.StepState{Name: name, Status: "in_progress", Number: len(w.progress) + 1, StartedAt: &at})
	w.report.steps(w.progress)
}

// end closes the step that begin opened. A step that failed fails the job, unless that is canceled.
func (w *worker) end(err error) {
	at, conclusion := time.Now().UTC(), "success"
	if err != nil {
		conclusion = "failure"
		if errors.Is(err, errCanceled) {
			conclusion = "cancelled"
		} else if w.status == "success" {
			w.status = "failure"
		}
		w.logf("##[error]%v\n", err)
	}
	last := &w.progress[len(w.progress)-1]
	last.Status, last.Conclusion, last.CompletedAt = "completed", &conclusion, &at
	w.report.steps(w.progress)
}

// skip notes a step that is not run because its condition is not met or the runner stops.
func (w *worker) skip(name string) {
	conclusion := "skipped"
	w.progress = append(w.progress, protocol.StepState{Name: name, Status: "completed", Conclusion: &conclusion, Number: len(w.progress) + 1})
}

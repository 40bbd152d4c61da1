package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

// listener holds a session and runs one job at a time.
type listener struct {
	root     string
	settings runnerfiles.Settings
	client   *client
	session  url.Values
	out      io.Writer
	errOut   io.Writer

	current *dispatcher // nil: idle
	next    int64       // a job given while the worker of the last one, already complete, had not yet ended; 0: none

	updating string        // the version that it updates itself to; empty: it does not
	updated  chan struct{} // closed when the new version is there
}

// listen is the run command. Its result is the exit code.
func listen(root string, in inputs, out, errOut io.Writer) int {
	// A listener goes on when its output is no longer read: its job matters more. Caught and not ignored, so that steps do not
	// inherit it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer done()
	stop, end := context.WithCancel(stop)
	defer end()
	terminated := exitOnSIGTERM()
	go func() {
		<-terminated
		end()
	}()
	l := &listener{root: root, out: out, errOut: errOut}
	if err := l.configuration(in); err != nil {
		fmt.Fprintln(errOut, "An error occurred:", err)
		return exitTerminatedError
	}
	if !l.warmUp(stop) {
		return exitSuccess
	}
	if code, err := l.connect(stop); err != nil {
		if stop.Err() != nil {
			return exitSuccess
		}
		fmt.Fprintln(errOut, err)
		return code
	}
	code := l.serve(stop)
	if stop.Err() != nil {
		time.Sleep(durationOf(os.Environ(), stopTimeVariable, 0))
	}
	l.closeSession()
	return code
}

func (l *listener) configuration(in inputs) error {
	if jit := in.values["jitconfig"]; jit != "" {
		files, err := runnerfiles.Decode(jit)
		if err != nil {
			return err
		}
		if err := runnerfiles.Save(l.root, files); err != nil {
			return err
		}
	}
	settings, secret, err := runnerfiles.Load(l.root)
	if errors.Is(err, runnerfiles.ErrNotConfigured) {
		return message("Runner is not configured.")
	}
	l.settings, l.client = settings, newClient(settings.ServerURL, secret)
	if err == nil {
		err = l.loadEnvironment()
	}
	return err
}

// loadEnvironment sets what the file .env of the runner's directory says (actions/runner 2.336, src/Runner.Listener/Program.cs:172).
// The file .path is not read: only runsvc.sh does that (src/Misc/layoutbin/runsvc.sh:7).
func (l *listener) loadEnvironment() error {
	env, err := os.ReadFile(filepath.Join(l.root, ".env"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load .env: %w", err)
	}
	for _, line := range strings.Split(string(env), "\n") {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || key == "" {
			continue
		}
		if err := os.Setenv(key, value); err != nil {
			return fmt.Errorf("load .env: set %s: %w", key, err)
		}
	}
	return nil
}

// warmUp takes the time that the real listener takes before it opens its session, and reports whether it may go on.
func (l *listener) warmUp(stop context.Context) bool {
	select {
	case <-time.After(l.settings.Times.Listen):
		return true
	case <-stop.Done():
		return false
	}
}

func now() string { return time.Now().UTC().Format("2006-01-02 15:04:05Z") }

// serve takes jobs until it is asked to stop, its registration is gone, or its one job is done.
func (l *listener) serve(stop context.Context) int {
	polling, endPolling := context.WithCancel(stop)
	defer endPolling()
	messages, ended := make(chan protocol.Message), make(chan error, 1)
	go func() { ended <- l.pollLoop(polling, messages) }()
	for {
		select {
		case <-stop.Done():
			l.shutDown()
			return exitSuccess
		case m := <-messages:
			l.handle(m)
		case <-l.current.done():
			if l.jobEnded() && l.settings.Ephemeral {
				return l.leave()
			}
			if id := l.next; id != 0 {
				l.next = 0
				l.current = l.dispatch(id)
			}
		case <-l.updated:
			return l.leaveForUpdate()
		case err := <-ended:
			if stop.Err() != nil {
				continue
			}
			return l.pollEnded(err)
		}
	}
}

// pollEnded ends the listener for a reason the server gave. A job that runs is not ended by it.
func (l *listener) pollEnded(err error) int {
	if codeOf(err) == http.StatusNotFound && !l.settings.Ephemeral {
		return l.registrationGone()
	}
	if l.current != nil {
		<-l.current.done()
		if l.jobEnded() && l.settings.Ephemeral {
			return l.leave()
		}
	}
	switch codeOf(err) {
	case http.StatusNotFound:
		return l.registrationGone()
	case http.StatusForbidden:
		return l.versionRefused(err)
	}
	fmt.Fprintf(l.errOut, "%s: Runner connect error: %v\n", now(), err)
	switch {
	case codeOf(err) == http.StatusConflict:
		return exitSessionConflict
	case passing(err):
		return exitRetryableError
	}
	return exitTerminatedError
}

func (l *listener) handle(m protocol.Message) {
	switch {
	case m.Kind == protocol.MessageRefresh:
		l.update(m.Version)
	case m.Kind == protocol.MessageJob && l.updating != "": // it is skipped, and goes back to the queue when its time is over
	case m.Kind == protocol.MessageJob && l.current == nil:
		l.current = l.dispatch(m.JobID)
	case m.Kind == protocol.MessageJob:
		l.next = m.JobID
	case m.Kind == protocol.MessageCancel && l.current != nil && l.current.id == m.JobID:
		l.current.tell(tellCancel)
	}
}

// jobEnded forgets the job, and reports whether a run-once listener is done with it: every job that it acquired counts.
func (l *listener) jobEnded() bool {
	d := l.current
	l.current = nil
	if d.worker == nil {
		return d.taken
	}
	result, known := "Failed", true
	switch d.worker.exitCode() {
	case workerSucceeded:
		result = "Succeeded"
	case workerFailed:
	case workerCanceled:
		result = "Canceled"
	default:
		known = false
	}
	if !known { // the listener ends the job in its place, and says what the worker said (JobDispatcher.cs 551-577 and 1208-1226)
		l.failJob(d.job, cmp.Or(d.worker.said.String(), "The worker ended before its job did."))
	}
	fmt.Fprintf(l.out, "%s: Job %s completed with result: %s\n", now(), d.job.Name, result)
	return true
}

// failJob ends a job in the place of a worker that cannot.
func (l *listener) failJob(job protocol.Job, reason string) {
	c := newClient(l.settings.ServerURL, job.Token)
	if err := completeJob(c, job.ID, protocol.Complete{Conclusion: "failure", Reason: reason}); err != nil {
		fmt.Fprintf(l.errOut, "%s: Cannot complete job %s: %v\n", now(), job.Name, err)
	}
}

// shutDown ends a running job as failed, which is what actions/runner does when it is stopped. Of a job without a worker it says
// nothing: see dispatcher.
func (l *listener) shutDown() {
	fmt.Fprintln(l.out, "Exiting...")
	if l.current != nil {
		l.current.tell(tellShutdown)
		<-l.current.done()
		l.jobEnded()
	}
}

// leave deletes the configuration of an ephemeral runner, whose registration went with its job.
func (l *listener) leave() int {
	if err := deleteFiles(l.root, l.out); err != nil {
		fmt.Fprintln(l.errOut, err)
	}
	return exitSuccess
}

// registrationGone ends a listener whose registration GitHub has deleted, with a job that it may have
// (actions/runner 2.336, src/Runner.Listener/Runner.cs:823-880).
func (l *listener) registrationGone() int {
	fmt.Fprintln(l.errOut, "The runner no longer exists on the server. Cleaning up local configuration.")
	if l.current != nil {
		l.current.tell(tellShutdown)
		<-l.current.done()
		l.jobEnded()
	}
	return l.leave()
}

// versionRefused ends a listener of a version to which GitHub gives no message (Program.cs:142-147,162-170).
func (l *listener) versionRefused(err error) int {
	fmt.Fprintf(l.errOut, "An error occurred: %v\n", err)
	if v := os.Getenv(deprecatedVariable); v == "1" || strings.EqualFold(v, "true") {
		return exitDeprecated
	}
	return exitTerminatedError
}

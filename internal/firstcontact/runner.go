package firstcontact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/tree"
)

// runner is one directory with a runner.
type runner struct {
	s    *session
	name string // of its registration
	dir  string
	id   int64 // of its registration; 0: none
}

// newRunner lays out a runner like another one. The files are hard links where the file system allows it.
func (s *session) newRunner(from string) (*runner, error) {
	r := &runner{s: s, name: s.name("runner")}
	r.dir = s.path(r.name)
	if err := tree.Mirror(from, r.dir, tree.Owner{UID: os.Getuid(), GID: os.Getgid()}); err != nil {
		return nil, fmt.Errorf("copy the runner: %w", err)
	}
	return r, nil
}

// inputPrefix begins the variables from which the runner reads its options: no secret is in an argument list.
const inputPrefix = "ACTIONS_RUNNER_INPUT_"

// environment is what the runner's programs get: ours, without credentials, and more.
func environment(more ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GITHUB_TOKEN=") && !strings.HasPrefix(kv, "GH_TOKEN=") {
			env = append(env, kv)
		}
	}
	if os.Geteuid() == 0 {
		env = append(env, "RUNNER_ALLOW_RUNASROOT=1")
	}
	return append(env, more...)
}

// config runs config.sh and returns its output, exit code and time. A secret is given in the environment.
func (r *runner) config(ctx context.Context, secret string, args ...string) (output string, code int, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.s.Times.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(r.dir, "config.sh"), args...)
	cmd.Dir, cmd.Env = r.dir, environment(inputPrefix+"TOKEN="+secret)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The script has a child, which would go on to register the runner.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	begun := time.Now()
	text, err := cmd.CombinedOutput()
	took = time.Since(begun)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return string(text), exit.ExitCode(), took, nil
	}
	if err != nil {
		return "", 0, took, fmt.Errorf("run config.sh %s: %w", args[0], errors.Join(err, context.Cause(ctx)))
	}
	return string(text), 0, took, nil
}

// register configures the runner with its name and some labels, as the agent does, and more arguments.
func (r *runner) register(ctx context.Context, labels string, more ...string) error {
	output, code, took, err := r.tryRegister(ctx, labels, more...)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("config.sh ended with exit code %d: %s", code, lastLines(output))
	}
	r.s.configured = append(r.s.configured, took)
	r.id, err = r.agentID()
	return err
}

// tryRegister is register, with the exit code of config.sh as a result.
func (r *runner) tryRegister(ctx context.Context, labels string, more ...string) (output string, code int, took time.Duration, err error) {
	r.s.Say("registering runner %s", r.name)
	t, err := r.s.gh.registrationToken(ctx)
	if err != nil {
		return "", 0, 0, err
	}
	args := append([]string{"--unattended", "--disableupdate", "--replace", "--no-default-labels", "--url", r.s.gh.site(),
		"--name", r.name, "--labels", labels}, more...)
	return r.config(ctx, t.Token, args...)
}

// remove runs config.sh remove with a new token.
func (r *runner) remove(ctx context.Context) (output string, code int, err error) {
	t, err := r.s.gh.removeToken(ctx)
	if err != nil {
		return "", 0, err
	}
	output, code, _, err = r.config(ctx, t.Token, "remove", "--unattended")
	return output, code, err
}

// bom begins the files that the runner writes.
var bom = []byte("\xef\xbb\xbf")

// agentID is the id of the registration in .runner.
func (r *runner) agentID() (int64, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, ".runner"))
	if err != nil {
		return 0, fmt.Errorf("read the registration: %w", err)
	}
	var settings struct {
		AgentID int64 `json:"agentId"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, bom), &settings); err != nil {
		return 0, fmt.Errorf("read the registration: %w", err)
	}
	return settings.AgentID, nil
}

// files are the names of the registration's files that are there.
func (r *runner) files() []string {
	var there []string
	for _, name := range []string{".runner", ".credentials", ".credentials_rsaparams"} {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// listener is a running Runner.Listener.
type listener struct {
	r    *runner
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	out bytes.Buffer
	// at is when each line was printed that awaitLine looks for.
	at map[string]time.Time
}

// The lines of the listener that say how far it is (actions/runner 2.336, src/Runner.Listener/Runner.cs:491, JobDispatcher.cs:377).
const (
	lineListening = "Listening for Jobs"
	lineJob       = "Running job:"
)

// Write takes what the listener prints.
func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Write(p)
	for _, line := range []string{lineListening, lineJob} {
		if _, seen := l.at[line]; !seen && bytes.Contains(l.out.Bytes(), []byte(line)) {
			l.at[line] = time.Now()
		}
	}
	return len(p), nil
}

func (l *listener) output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// printed is when the listener printed a line; false: it has not.
func (l *listener) printed(line string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.at[line]
	return at, ok
}

// start starts the listener with more in its environment, and does not wait for it.
func (r *runner) start(more ...string) (*listener, error) {
	r.s.Say("starting the listener of %s", r.name)
	l := &listener{r: r, done: make(chan struct{}), at: map[string]time.Time{}}
	l.cmd = exec.Command(filepath.Join(r.dir, "bin", "Runner.Listener"), "run")
	l.cmd.Dir, l.cmd.Env = r.dir, environment(more...)
	l.cmd.Stdout, l.cmd.Stderr = l, l
	l.cmd.WaitDelay = time.Second                           // for the steps that hold its output open
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is ours to pass on
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the listener: %w", err)
	}
	go func() {
		defer close(l.done)
		_ = l.cmd.Wait() // how it ended is read off its exit code
	}()
	r.s.listeners = append(r.s.listeners, l)
	return l, nil
}

// listen starts the listener and waits until it listens.
func (r *runner) listen(ctx context.Context, more ...string) (*listener, error) {
	begun := time.Now()
	l, err := r.start(more...)
	if err != nil {
		return nil, err
	}
	if err := l.awaitLine(ctx, lineListening); err != nil {
		return nil, err
	}
	at, _ := l.printed(lineListening)
	r.s.listened = append(r.s.listened, at.Sub(begun))
	return l, nil
}

// metSession reports whether another listener had the session (actions/runner 2.336, src/Runner.Listener/BrokerMessageListener.cs:472-491).
func (l *listener) metSession() bool {
	return strings.Contains(l.output(), "A session for this runner already exists")
}

// awaitLine waits until the listener has printed a line, or has ended without it.
func (l *listener) awaitLine(ctx context.Context, line string) error {
	_, err := l.r.s.mustWatch(ctx, fmt.Sprintf("the listener to print %q", line), func() (bool, error) {
		ended := l.ended()
		if _, ok := l.printed(line); ok {
			return true, nil
		}
		if ended {
			return false, fmt.Errorf("the listener ended with exit code %d without printing %q: %s", l.code(), line, lastLines(l.output()))
		}
		return false, nil
	})
	return err
}

func (l *listener) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// code is the exit code of a listener that has ended; -1: a signal ended it.
func (l *listener) code() int { return l.cmd.ProcessState.ExitCode() }

// awaitEnd waits for the end of the listener, and reports whether it came.
func (l *listener) awaitEnd(ctx context.Context, limit time.Duration) (time.Duration, bool, error) {
	return l.r.s.watch(ctx, limit, "the end of the listener", func() (bool, error) { return l.ended(), nil })
}

// decideEnd waits for the end of the listener, and decides by it. A listener that goes on refutes the assumption, and is killed.
func (l *listener) decideEnd(ctx context.Context, assumption string, holds func() bool) error {
	s := l.r.s
	took, ended, err := l.awaitEnd(ctx, s.Times.Patience)
	switch {
	case err != nil:
		return err
	case !ended:
		s.Decide(assumption, false, "it listens still, %s later", findings.Seconds(took))
		l.kill()
	default:
		s.Decide(assumption, holds(), "it ended %s later with exit code %d, left %s and said: %s",
			findings.Seconds(took), l.code(), listOf(l.r.files()), lastLines(l.output()))
	}
	return nil
}

// signal sends a signal to the listener alone.
func (l *listener) signal(sig syscall.Signal) { _ = l.cmd.Process.Signal(sig) } // an error means that it has ended

// stop ends the listener as the agent does, so that its session is closed.
func (l *listener) stop(ctx context.Context) error {
	l.signal(syscall.SIGINT)
	took, ended, err := l.awaitEnd(ctx, l.r.s.Times.Stop)
	if err == nil && !ended {
		err = fmt.Errorf("the listener did not end within %s of SIGINT", findings.Seconds(took))
	}
	return err
}

// kill ends the listener and everything that it has started.
func (l *listener) kill() {
	_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) // an error means that it has ended
	<-l.done
}

// versionOf is the version of the runner in a directory, from the file that .NET writes beside a program.
func versionOf(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "bin", "Runner.Listener.deps.json"))
	if m := versionOfListener.FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return "of an unknown version"
}

var versionOfListener = regexp.MustCompile(`"Runner\.Listener/([^"]+)"`)

// lastLines is the end of an output in one line: at most three of its lines, and before them what GitHub answered
// (actions/runner 2.336, src/Runner.Common/RunnerDotcomServer.cs:159).
func lastLines(output string) string {
	lines := strings.FieldsFunc(output, func(c rune) bool { return c == '\n' })
	first := max(0, len(lines)-3)
	shown := slices.DeleteFunc(slices.Clone(lines[:first]), func(line string) bool { return !strings.Contains(line, "Http response code") })
	if len(shown) > 0 {
		shown = shown[len(shown)-1:]
	}
	return strings.Join(append(shown, lines[first:]...), " | ")
}

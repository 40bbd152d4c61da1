package githubsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// patience bounds every wait for a real process, on a machine that has much else to do.
const patience = 8 * time.Minute

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// standin is a running stand-in that can be stopped and started again on the same address and state.
type standin struct {
	t     *testing.T
	opts  githubsim.Options
	clock *clock
	addr  string
	url   string
	// client makes the calls, each held against GitHub's description.
	client *http.Client
	*githubsim.Server
	stop func()
}

// start also makes the test parallel: what it waits for is other processes. The stand-in has the times of tests, except that the lock
// of a job is GitHub's: the tests move the clock, and a runner renews in real time.
func start(t *testing.T) *standin {
	t.Helper()
	times := githubsim.QuickTimes
	times.Lock = 0
	return startWith(t, times)
}

func startWith(t *testing.T, times githubsim.Times) *standin {
	t.Helper()
	t.Parallel()
	s := &standin{t: t, addr: reserve(t), clock: &clock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: checkAnswers(t, transport)}
	s.opts = githubsim.Options{StateDir: filepath.Join(t.TempDir(), "state"), Now: s.clock.Now, Times: times}
	s.up()
	t.Cleanup(func() { s.stop() })
	return s
}

// reserve has the kernel keep a port for the test: it is bound and not listened on, so that calls are refused, no other process
// gets it, and the stand-in can listen on it again and again.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), // as net.Listen does
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", addr.(*syscall.SockaddrInet4).Port)
}

func (s *standin) up() {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.addr)
	// A process that another test is starting holds the last listener until its program is loaded.
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ln, err = net.Listen("tcp", s.addr)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.url = "http://" + s.addr
	if s.Server, err = githubsim.New(s.opts); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			s.t.Errorf("Serve: %v", err)
		}
		s.client.CloseIdleConnections() // they lead to the server that is gone
	})
}

// call makes one call and decodes the answer into into, unless that is nil. It fails the test unless the status is want.
func (s *standin) call(want int, method, path string, body, into any) http.Header {
	s.t.Helper()
	return s.callWith(http.Header{"Authorization": {"Bearer test"}}, want, method, path, body, into)
}

func (s *standin) callWith(header http.Header, want int, method, path string, body, into any) http.Header {
	s.t.Helper()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, s.url+path, sent)
	if err != nil {
		s.t.Fatal(err)
	}
	if req.Header = header.Clone(); body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != want {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, want, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
	return resp.Header
}

type jobView struct {
	ID          int64
	Name        string
	RunAttempt  int `json:"run_attempt"`
	Status      string
	Conclusion  *string
	Runner      *string
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Log         string
}

func (j jobView) conclusion() string {
	if j.Conclusion == nil {
		return j.Status
	}
	return *j.Conclusion
}

type runView struct {
	ID         int64
	RunAttempt int `json:"run_attempt"`
	Status     string
	Conclusion *string
	Jobs       []jobView
}

func (v runView) conclusions() map[string]string {
	out := map[string]string{}
	for _, j := range v.Jobs {
		out[j.Name] = j.conclusion()
	}
	return out
}

func (s *standin) startRun(workflow string) int64 {
	s.t.Helper()
	var v runView
	s.call(201, "POST", "/_standin/runs", map[string]any{"repository": "acme/app", "workflow": workflow}, &v)
	return v.ID
}

// startRunFrom starts a run of one job with what the origin says.
func (s *standin) startRunFrom(origin map[string]any) int64 {
	s.t.Helper()
	body := map[string]any{"repository": "acme/app", "workflow": oneJob}
	maps.Copy(body, origin)
	var v runView
	s.call(201, "POST", "/_standin/runs", body, &v)
	return v.ID
}

func (s *standin) run(id int64) runView {
	s.t.Helper()
	var v runView
	s.call(200, "GET", fmt.Sprintf("/_standin/runs/%d", id), nil, &v)
	return v
}

// await polls the run until ok holds.
func (s *standin) await(id int64, what string, ok func(runView) bool) runView {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		v := s.run(id)
		if ok(v) {
			return v
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("run %d: no %s in %s: %+v", id, what, patience, v)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *standin) completed(id int64) runView {
	s.t.Helper()
	return s.await(id, "completion", func(v runView) bool { return v.Status == "completed" })
}

func (s *standin) awaitLog(id int64, text string) runView {
	s.t.Helper()
	return s.await(id, "log "+text, func(v runView) bool { return strings.Contains(v.Jobs[0].Log, text) })
}

func (s *standin) token(purpose string) string {
	s.t.Helper()
	var got struct{ Token string }
	s.call(201, "POST", "/repos/acme/app/actions/runners/"+purpose+"-token", nil, &got)
	return got.Token
}

type runnerView struct {
	ID     int64
	Name   string
	Labels []string
	Status string
	Busy   bool

	Polling bool
}

func (s *standin) runners() []runnerView {
	s.t.Helper()
	var got struct{ Runners []runnerView }
	s.call(200, "GET", "/_standin/runners", nil, &got)
	return got.Runners
}

// runnerDir is what buildRunner made, to be removed at the end.
var runnerDir string

var buildRunner = sync.OnceValues(func() (string, error) {
	// make test hands over what it has built; go test notes the size and the
	// time of a file that a test looks at, and reuses no result of another.
	if built := os.Getenv("REMUDA_TEST_RUNNER"); built != "" {
		_, err := os.Stat(built)
		return built, err
	}
	dir, err := os.MkdirTemp("", "standin-runner")
	if err != nil {
		return "", err
	}
	runnerDir = dir
	binary := filepath.Join(dir, "standin-runner")
	out, err := exec.Command("go", "build", "-o", binary, "./cmd/standin-runner").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build runner: %w: %s", err, out)
	}
	return binary, nil
})

// together is how many tests run at the same time: they wait for processes far more than they work.
const together = "5"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil { // a -parallel of the command line is read later, and counts
		panic(err)
	}
	code := m.Run()
	if runnerDir != "" {
		os.RemoveAll(runnerDir)
	}
	os.Exit(code)
}

// host is one runner directory.
type host struct {
	s    *standin
	dir  string
	name string
	env  []string
}

func (s *standin) newHost(name string) *host {
	s.t.Helper()
	binary, err := buildRunner()
	if err != nil {
		s.t.Fatal(err)
	}
	h := &host{s: s, dir: s.t.TempDir(), name: name}
	// A process that starts at the same time would hold the scripts open, and what is open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := runner.LayOut(h.dir, binary); err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (h *host) command(env []string, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(h.dir, program), args...)
	cmd.Dir = h.dir
	cmd.Env = append(append(os.Environ(), "RUNNER_ALLOW_RUNASROOT=1", "LANG=x.UTF-8"), append(h.env, env...)...)
	return cmd
}

// configure registers the runner the way an agent does: the token in the environment only.
func (h *host) configure(labels string, args ...string) {
	h.s.t.Helper()
	cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + h.s.token("registration")}, "config.sh",
		append([]string{"--unattended", "--url", h.s.url + "/acme/app", "--name", h.name, "--labels", labels}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		h.s.t.Fatalf("config.sh: %v: %s", err, out)
	}
}

// listener is a running Runner.Listener.
type listener struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	out  bytes.Buffer
	done chan struct{}
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *listener) output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (h *host) listen(env ...string) *listener {
	h.s.t.Helper()
	l := &listener{t: h.s.t, cmd: h.command(env, "bin/Runner.Listener", "run"), done: make(chan struct{})}
	l.cmd.Stdout, l.cmd.Stderr = l, l
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := l.cmd.Start(); err != nil {
		h.s.t.Fatal(err)
	}
	go func() { _ = l.cmd.Wait(); close(l.done) }()
	h.s.t.Cleanup(func() {
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		<-l.done
	})
	return l
}

func (l *listener) awaitOutput(text string) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(l.output(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("listener did not print %q:\n%s", text, l.output())
		}
	}
}

func (l *listener) exitCode() int {
	l.t.Helper()
	select {
	case <-l.done:
		return l.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		l.t.Fatalf("listener did not end:\n%s", l.output())
		return -1
	}
}

// online starts a runner that listens.
func (s *standin) online(name, labels string, env ...string) (*host, *listener) {
	s.t.Helper()
	h := s.newHost(name)
	h.configure(labels)
	l := h.listen(env...)
	l.awaitOutput("Listening for Jobs")
	return h, l
}

// script writes an executable file and returns its path.
func (h *host) script(name, body string) string {
	h.s.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+body+"\n"), 0o755); err != nil {
		h.s.t.Fatal(err)
	}
	return path
}

func (h *host) write(name, text string) {
	h.s.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
		h.s.t.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.s.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.s.t.Fatal(err)
	}
	return string(text)
}

// alive reports whether the process of a /proc directory is there and no zombie.
func alive(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

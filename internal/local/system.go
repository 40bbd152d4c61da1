// Package local runs the whole of Remuda on this machine: `controld dev` with
// its hosts and its GitHub stand-in, as the processes that a user would run.
// The demo, the tests with real processes and the benchmarks stand on it.
package local

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Options say how to start the system.
type Options struct {
	// Bin is the directory with controld, agentd and standin-runner.
	Bin string
	// StateDir holds everything that the system writes.
	StateDir string
	// GitHubAddr is where the stand-in listens or is to listen; empty: a free port of loopback.
	GitHubAddr string
	// Config is the path of a configuration; empty: the defaults.
	Config string
	// GitHub is how slow the stand-in is.
	GitHub Times
	// Serve starts `controld serve`, which goes by Config alone. GitHubAddr is
	// that of a stand-in that runs already.
	Serve bool
	// Stderr gets controld's log.
	Stderr io.Writer
}

// Times are how slow GitHub and its runner are. Zero is no time at all.
type Times struct {
	// API is the time of each call, Configure that of config.sh as a whole, and Listen what a listener takes before it opens its session.
	API, Configure, Listen time.Duration
}

// System is a running `controld dev`.
type System struct {
	Fleet    remudav1.FleetServiceClient
	GitHub   *GitHub
	GRPCAddr string
	HTTPAddr string

	options Options
	child   *child
	conn    *grpc.ClientConn
}

// Start starts controld and waits for its ready line.
func Start(ctx context.Context, o Options) (*System, error) {
	o.GitHubAddr = cmp.Or(o.GitHubAddr, "127.0.0.1:0")
	child, values, err := startChild(ctx, "controld", o.Bin, o.Stderr, o.args()...)
	if err != nil {
		return nil, err
	}
	s := &System{options: o, child: child, GRPCAddr: values["grpc"], HTTPAddr: values["http"]}
	s.GitHub = NewGitHub(cmp.Or(values["github"], o.GitHubAddr)) // serve does not report it
	conn, err := grpc.NewClient(s.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return s, fmt.Errorf("connect to controld at %s: %w", s.GRPCAddr, err)
	}
	s.conn, s.Fleet = conn, remudav1.NewFleetServiceClient(conn)
	return s, nil
}

func (o Options) args() []string {
	if o.Serve {
		return []string{"serve", "--config", o.Config}
	}
	args := []string{"dev", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--github-addr", o.GitHubAddr, "--state-dir", o.StateDir,
		"--api-time", o.GitHub.API.String(), "--configure-time", o.GitHub.Configure.String(), "--listen-time", o.GitHub.Listen.String()}
	if o.Config != "" {
		args = append(args, "--config", o.Config)
	}
	return args
}

// StateDir holds everything that the system writes.
func (s *System) StateDir() string { return s.options.StateDir }

// PID is controld's process id.
func (s *System) PID() int { return s.child.cmd.Process.Pid }

// Kill ends controld with SIGKILL. Its hosts and the stand-in live on: a Start
// with the same StateDir finds them again.
func (s *System) Kill() {
	s.disconnect()
	s.child.kill()
}

func (s *System) disconnect() {
	if s.conn != nil {
		_ = s.conn.Close() // closing twice is its only error
	}
}

// Stop ends controld with SIGTERM, and with it its hosts and the stand-in that it
// started. Those of `controld serve` live on.
func (s *System) Stop() error {
	s.disconnect()
	return s.child.stop()
}

const (
	// readyWithin bounds the start of controld, its stand-in included. It takes a second, and many where
	// everything is busy.
	readyWithin = 2 * time.Minute
	// stopWithin is for a controld that does not end by itself: within 10 s of SIGTERM it does, and says by its
	// exit code if it was not done then.
	stopWithin = 30 * time.Second
)

// child is a controld that prints "ready NAME=VALUE ..." once it serves.
type child struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
	exit   error // once exited is closed
}

// startChild starts the controld in bin and returns the values of its ready line.
func startChild(ctx context.Context, name, bin string, stderr io.Writer, args ...string) (*child, map[string]string, error) {
	c := &child{name: name, cmd: exec.Command(filepath.Join(bin, "controld"), args...), exited: make(chan struct{})}
	c.cmd.Stderr = stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is ours to pass on
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", name, err)
	}
	ready := make(chan string, 1)
	go c.follow(stdout, ready)
	select {
	case line := <-ready:
		values := map[string]string{}
		for _, field := range strings.Fields(line)[1:] {
			key, value, _ := strings.Cut(field, "=")
			values[key] = value
		}
		return c, values, nil
	case <-c.exited:
		return nil, nil, fmt.Errorf("start %s: it ended before it was ready: %w", name, c.exit)
	case <-ctx.Done():
		c.kill()
		return nil, nil, fmt.Errorf("start %s: %w", name, context.Cause(ctx))
	case <-time.After(readyWithin):
		c.kill()
		return nil, nil, fmt.Errorf("start %s: not ready within %s", name, readyWithin)
	}
}

// follow reads the output to its end and then reaps the process.
func (c *child) follow(stdout io.Reader, ready chan<- string) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "ready ") {
			ready <- line
		}
		if err != nil {
			break
		}
	}
	c.exit = c.cmd.Wait()
	close(c.exited)
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended already
	<-c.exited
}

// stop ends the process with SIGTERM.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	select {
	case <-c.exited:
		if c.exit != nil {
			return fmt.Errorf("stop %s: %w", c.name, c.exit)
		}
		return nil
	case <-time.After(stopWithin):
		c.kill()
		return fmt.Errorf("stop %s: still there %s after SIGTERM", c.name, stopWithin)
	}
}

// Process is one process of the system.
type Process struct {
	PID     int
	Command string
}

// Processes lists what runs of the system under stateDir: every process that names the directory in its
// arguments, its environment or its working directory, zombies left out.
func Processes(stateDir string) ([]Process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var list []Process
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil || len(args) == 0 || p.PID == os.Getpid() { // ended, a zombie or of the kernel, or ourselves
			continue
		}
		environ, _ := p.Environ() // not ours to read: not ours
		cwd, _ := p.Cwd()
		command := strings.Join(args, " ")
		if strings.Contains(command, stateDir) || strings.Contains(strings.Join(environ, " "), stateDir) || strings.HasPrefix(cwd, stateDir) {
			list = append(list, Process{PID: p.PID, Command: command})
		}
	}
	return list, nil
}

// endAtMost bounds how often EndProcesses looks: a killed process is gone in milliseconds.
const endAtMost = 100

// EndProcesses kills what Processes lists, until it lists nothing: an init may just be starting another process.
func EndProcesses(stateDir string) error {
	for range endAtMost {
		list, err := Processes(stateDir)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, p := range list {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("end the processes of %s: some are still there", stateDir)
}

// Log keeps what processes print, and can be read while they print more.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was printed so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

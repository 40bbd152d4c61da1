// Package local runs the whole of Remuda on this machine: `controld dev` with
// its hosts and its GitHub stand-in, as the processes that a user would run.
// The demo, the tests with real processes and the benchmarks stand on it.
package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// readyWithin bounds the start of controld, its stand-in included. It takes
	// a second, and many where everything is busy.
	readyWithin = 2 * time.Minute
	// stopWithin is for a controld that does not end by itself: within 10 s of
	// SIGTERM it does, and says by its exit code if it was not done then.
	stopWithin = 30 * time.Second
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
	// Serve starts `controld serve`, which goes by Config alone. GitHubAddr is
	// that of a stand-in that runs already.
	Serve bool
	// Stderr gets controld's log.
	Stderr io.Writer
}

// System is a running `controld dev`.
type System struct {
	Fleet    remudav1.FleetServiceClient
	GitHub   *GitHub
	GRPCAddr string
	HTTPAddr string

	options Options
	cmd     *exec.Cmd
	conn    *grpc.ClientConn
	exited  chan struct{}
	exit    error
}

// Start starts controld and waits for its ready line.
func Start(ctx context.Context, o Options) (*System, error) {
	if o.GitHubAddr == "" {
		o.GitHubAddr = "127.0.0.1:0"
	}
	cmd := exec.Command(filepath.Join(o.Bin, "controld"), o.args()...)
	cmd.Stderr = o.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C is ours to pass on
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start controld: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start controld: %w", err)
	}
	s := &System{options: o, cmd: cmd, exited: make(chan struct{})}
	ready := make(chan string, 1)
	go s.follow(stdout, ready)
	select {
	case line := <-ready:
		return s, s.connect(line)
	case <-s.exited:
		return nil, fmt.Errorf("start controld: it ended before it was ready: %w", s.exit)
	case <-ctx.Done():
		s.Kill()
		return nil, fmt.Errorf("start controld: %w", context.Cause(ctx))
	case <-time.After(readyWithin):
		s.Kill()
		return nil, fmt.Errorf("start controld: not ready within %s", readyWithin)
	}
}

func (o Options) args() []string {
	if o.Serve {
		return []string{"serve", "--config", o.Config}
	}
	args := []string{"dev", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--github-addr", o.GitHubAddr, "--state-dir", o.StateDir}
	if o.Config != "" {
		args = append(args, "--config", o.Config)
	}
	return args
}

// follow reads controld's output to its end and then reaps it.
func (s *System) follow(stdout io.Reader, ready chan<- string) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "ready ") {
			ready <- strings.TrimSpace(line)
		}
		if err != nil {
			break
		}
	}
	s.exit = s.cmd.Wait()
	close(s.exited)
}

func (s *System) connect(line string) error {
	addrs := map[string]string{"github": s.options.GitHubAddr} // serve does not tell it
	for _, field := range strings.Fields(line)[1:] {
		key, value, _ := strings.Cut(field, "=")
		addrs[key] = value
	}
	s.GRPCAddr, s.HTTPAddr = addrs["grpc"], addrs["http"]
	s.GitHub = NewGitHub(addrs["github"])
	conn, err := grpc.NewClient(s.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to controld at %s: %w", s.GRPCAddr, err)
	}
	s.conn, s.Fleet = conn, remudav1.NewFleetServiceClient(conn)
	return nil
}

// StateDir holds everything that the system writes.
func (s *System) StateDir() string { return s.options.StateDir }

// PID is controld's process id.
func (s *System) PID() int { return s.cmd.Process.Pid }

// Kill ends controld with SIGKILL. Its hosts and the stand-in live on: a Start
// with the same StateDir finds them again.
func (s *System) Kill() {
	s.disconnect()
	_ = s.cmd.Process.Kill() // it has ended already: just as well
	<-s.exited
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
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop controld: %w", err)
	}
	select {
	case <-s.exited:
		if s.exit != nil {
			return fmt.Errorf("stop controld: %w", s.exit)
		}
		return nil
	case <-time.After(stopWithin):
		s.Kill()
		return fmt.Errorf("stop controld: still there %s after SIGTERM", stopWithin)
	}
}

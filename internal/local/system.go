// Package local runs the whole of Remuda on this machine: `controld dev` with
// its hosts and its GitHub stand-in, as the processes that a user would run.
// The demo, the tests with real processes and the benchmarks stand on it.
package local

import (
	"cmp"
	"context"
	"fmt"
	"io"

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
	child   *child
	conn    *grpc.ClientConn
}

// Start starts controld and waits for its ready line.
func Start(ctx context.Context, o Options) (*System, error) {
	if o.GitHubAddr == "" {
		o.GitHubAddr = "127.0.0.1:0"
	}
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
	args := []string{"dev", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--github-addr", o.GitHubAddr, "--state-dir", o.StateDir}
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

//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

const repository = "acme/shop"

// The times of the fleet: shorter than by default in the same proportions, so that ten minutes have many of them.
const (
	lease    = 6 * time.Second
	interval = 2 * time.Second
)

// stage is a fleet under fire.
type stage struct {
	testing.TB
	disk     *disk
	state    string // a directory for all that needs no small disk
	store    store.Store
	report   func(ctx context.Context, p lifecycle.Report) error
	replicas []*replica
	history  *history
	hosts    *hosts
	// machines are those that run, by instance id.
	machines func(ctx context.Context) (map[string]bool, error)
	// oneClock: the processes are of one machine, so all of them have the wrong clock.
	oneClock bool
}

// startGitHub starts the stand-in and returns its address.
func (s *stage) startGitHub() string {
	s.Helper()
	dir := filepath.Join(s.state, "github")
	cmd := exec.Command(filepath.Join(bin(s.TB), "controld"), "github-standin", "--addr", "127.0.0.1:0", "--state-dir", dir)
	out, err := cmd.StdoutPipe()
	check(s.TB, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the signal comes when the thread ends
		err := cmd.Start()
		started <- err
		if err == nil {
			<-ended
		}
	}()
	check(s.TB, <-started)
	s.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		close(ended)
	})
	line := make([]byte, 256)
	n, err := out.Read(line)
	check(s.TB, err)
	for _, field := range strings.Fields(string(line[:n])) {
		if address, ok := strings.CutPrefix(field, "github="); ok {
			return address
		}
	}
	s.Fatalf("the stand-in said %q", line[:n])
	return ""
}

// common says max_runtime, since the version before has another default and takes a request with another for another one.
const common = `
grpc: {addr: "` + grpcAddr + `"}
http: {addr: "0.0.0.0:` + httpPort + `"}
github: {url: "http://%s/api/v3", token_file: %s}
pools:
  default: {resource_classes: [large], usage_classes: [on-demand], max_runtime: 2h, idle_time: 2h, standby: clean, drift: ignore}
  brief: {resource_classes: [large], usage_classes: [on-demand], max_runtime: 2h, idle_time: 2s, standby: clean, drift: ignore}
timeouts: {claim_margin: 1s, creation: 3m, claim: 90s}
sweeps: {due: %s, lease: %s, liveness: 10s, cloud: 20s, grace: 1m}
`

// newReplicas makes so many replicas with a configuration, to which each adds what it needs to reach.
func (s *stage) newReplicas(n int, backend string, environ func(n *network) []string) {
	s.Helper()
	github := s.startGitHub()
	token := filepath.Join(s.state, "token")
	check(s.TB, os.WriteFile(token, []byte("standin\n"), 0o600))
	for i := range n {
		network := newNetwork(s.TB, i)
		r := newReplica(s.TB, i, network)
		r.config, r.log = filepath.Join(s.state, fmt.Sprintf("controld-%d.yaml", i)), s.disk.path(fmt.Sprintf("controld-%d.log", i))
		text := backend + fmt.Sprintf(common, network.relay(s.TB, github), token, interval, lease)
		check(s.TB, os.WriteFile(r.config, []byte(text), 0o600))
		if environ != nil {
			r.env = environ(network)
		}
		s.replicas = append(s.replicas, r)
	}
	for _, r := range s.replicas {
		check(s.TB, r.start())
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

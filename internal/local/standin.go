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
)

// Standin is a GitHub stand-in that runs alone, for a `controld serve`.
type Standin struct {
	GitHub *GitHub
	// Addr is where it listens, host:port.
	Addr string

	cmd    *exec.Cmd
	exited chan error
}

// StartStandin starts the stand-in of the controld in bin, which keeps what it
// has in a directory, and waits for its ready line.
func StartStandin(ctx context.Context, bin, stateDir string, stderr io.Writer) (*Standin, error) {
	cmd := exec.Command(filepath.Join(bin, "controld"), "github-standin", "--addr", "127.0.0.1:0", "--state-dir", stateDir)
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as controld's own
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start stand-in: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start stand-in: %w", err)
	}
	s := &Standin{cmd: cmd, exited: make(chan error, 1)}
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n') // it prints one; without it it has ended
		ready <- line
		s.exited <- cmd.Wait()
	}()
	select {
	case line := <-ready:
		for _, field := range strings.Fields(line) {
			if addr, found := strings.CutPrefix(field, "github="); found {
				s.Addr, s.GitHub = addr, NewGitHub(addr)
				return s, nil
			}
		}
		return nil, fmt.Errorf("start stand-in: it was not ready: %w", <-s.exited)
	case <-ctx.Done():
		_ = cmd.Process.Kill() // it has ended already: just as well
		return nil, fmt.Errorf("start stand-in: %w", context.Cause(ctx))
	}
}

// Stop ends it with SIGTERM.
func (s *Standin) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop stand-in: %w", err)
	}
	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("stop stand-in: %w", err)
		}
		return nil
	case <-time.After(stopWithin):
		_ = s.cmd.Process.Kill()
		return fmt.Errorf("stop stand-in: still there %s after SIGTERM", stopWithin)
	}
}

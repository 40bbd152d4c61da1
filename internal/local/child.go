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

//go:build soak

package soak_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a controld under test. It ends with the test, however that ends.
type process struct {
	pid    int
	clock  *wallClock // nil: it cannot be set here
	exited chan struct{}
}

// startWithin is for a machine that is busy, with a store that was just away.
const startWithin = time.Minute

// start starts controld in the network, with a clock of its own, and waits for its ready line.
func (r *replica) start() error {
	log, err := os.OpenFile(r.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(r.bin, "controld"), "serve", "--config", r.config)
	cmd.Env = append(os.Environ(), r.env...)
	cmd.Stdout, cmd.Stderr = in, log
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread belongs to the network, and the process ends with it
		err := p.begin(cmd, r.network)
		_ = in.Close() // the process has its own
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed as a rule
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		_ = out.Close()
		return fmt.Errorf("start replica %d: %w", r.number, err)
	}
	r.mu.Lock()
	r.process = p
	r.mu.Unlock()
	return p.awaitReady(out)
}

// begin executes the program on this thread, which it enters the network with, and changes its clock before it runs.
func (p *process) begin(cmd *exec.Cmd, n *network) error {
	if err := n.enter(); err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.pid, &status, 0, nil)
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it did not stop at its first instruction: %v", status)
	}
	if err == nil {
		if p.clock, err = openWallClock(p.pid); errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
	}
	if detached := syscall.PtraceDetach(p.pid); err == nil {
		err = detached
	}
	if err != nil {
		_ = cmd.Process.Kill() // it did not get anywhere
		_ = cmd.Wait()
	}
	return err
}

// awaitReady reads the output until the ready line, and then past the rest of it.
func (p *process) awaitReady(out *os.File) error {
	ready := make(chan struct{})
	go func() {
		defer out.Close()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
		return nil
	case <-p.exited:
		return errors.New("controld ended before it was ready")
	case <-time.After(startWithin):
		return fmt.Errorf("controld was not ready within %s", startWithin)
	}
}

// kill ends the process with SIGKILL. Its hosts live on.
func (p *process) kill() error {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.exited
	if p.clock != nil {
		p.clock.close()
	}
	return nil
}

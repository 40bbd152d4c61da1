package awstest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is for a machine that is busy with everything else: a start takes 2 s of processor time.
	startTimeout = 2 * time.Minute
	// lookEvery is how often a starting emulator is looked at. Each look reads the machine's table of sockets.
	lookEvery = 100 * time.Millisecond
	// starts are tried so often when another program was faster to take a port.
	starts = 5
)

// emulator is how to run one.
type emulator struct {
	name string
	// command is the program, to listen on a port. With the port 0 it chooses one.
	command func(i installation, port int) *exec.Cmd
	// port that is asked for.
	port func() (int, error)
	// ready makes a call and fails as long as none is answered.
	ready func(ctx context.Context, endpoint string) error
}

// start runs an emulator until stop is called, or else until this process is gone, however it goes.
func (e emulator) start() (endpoint string, stop func(), err error) {
	i, err := installed()
	if err != nil {
		return "", nil, err
	}
	for range starts {
		if endpoint, stop, err = e.startOnce(i); err == nil {
			return endpoint, stop, nil
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return "", nil, fmt.Errorf("start %s: %w", e.name, err)
}

// errEnded: the emulator ended by itself, as it does if its port is taken.
var errEnded = errors.New("it has ended")

func (e emulator) startOnce(i installation) (string, func(), error) {
	port, err := e.port()
	if err != nil {
		return "", nil, err
	}
	cmd := e.command(i, port)
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output
	ended, err := startBound(cmd)
	if err != nil {
		return "", nil, err
	}
	stop := func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-ended
	}
	endpoint, err := e.await(cmd.Process.Pid, ended)
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%w\n%s", err, &output)
	}
	return endpoint, stop, nil
}

// await returns the endpoint once a call to it was answered. The port is the
// one at which this very process listens, and no other's that was faster.
func (e emulator) await(pid int, ended <-chan struct{}) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	last := errors.New("it does not listen")
	for {
		port, err := listensAt(pid)
		if err == nil {
			endpoint := fmt.Sprintf("http://127.0.0.1:%d", port)
			if err = e.ready(ctx, endpoint); err == nil {
				return endpoint, nil
			}
			last = err
		}
		select {
		case <-ended:
			return "", errEnded
		case <-ctx.Done():
			return "", fmt.Errorf("no answer within %v: %w", startTimeout, last)
		case <-look.C:
		}
	}
}

// startBound starts a program that the kernel kills when this process is gone. That signal comes when the
// thread ends that started the program, so the thread is kept until the program has ended.
func startBound(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is always killed
		}
		close(done)
	}()
	return done, <-started
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

package slate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// hookOutput is how much of the output of the hook goes to the log, in bytes; the rest is counted.
	hookOutput = 64 << 10
	// hookTail is how much of the end of its output stands in the error, in bytes.
	hookTail = 500
	// hookWait is how long the hook's output stays open for what the hook has left running.
	hookWait = time.Second
)

// errHookLimit is why the hook was killed.
var errHookLimit = errors.New("it did not end within its time limit")

// hook runs the operator's script, if there is one. A command in it that fails makes it fail, also in the middle of a pipe.
func (p Plan) hook(ctx context.Context, log hclog.Logger) error {
	if p.Hook == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.HookLimit, errHookLimit)
	defer cancel()
	out := &lines{log: log.Named("post-release")}
	cmd := exec.CommandContext(ctx, "/bin/bash", "-e", "-o", "pipefail", p.Hook)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = rootEnvironment(), "/", out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = hookWait
	err := cmd.Run()
	out.flush()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a service that it has started may write on, to nobody
		return nil
	case errors.Is(context.Cause(ctx), errHookLimit):
		err = fmt.Errorf("%w of %s", errHookLimit, p.HookLimit)
	}
	return fmt.Errorf("run %s: %w: %s", p.Hook, err, bytes.TrimSpace(out.tail))
}

// lines logs what is written to it line by line, up to hookOutput.
type lines struct {
	log     hclog.Logger
	line    []byte
	tail    []byte
	written int
}

func (l *lines) Write(data []byte) (int, error) {
	l.tail = append(l.tail, data...)
	if over := len(l.tail) - hookTail; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	room := max(hookOutput-l.written, 0)
	l.written += len(data)
	for _, c := range data[:min(room, len(data))] {
		if c == '\n' {
			l.say()
		} else {
			l.line = append(l.line, c)
		}
	}
	return len(data), nil
}

func (l *lines) say() {
	l.log.Info("output", "line", string(bytes.ToValidUTF8(l.line, []byte("?"))))
	l.line = l.line[:0]
}

// flush logs the line that was not ended, and how much is missing.
func (l *lines) flush() {
	if len(l.line) > 0 {
		l.say()
	}
	if over := l.written - hookOutput; over > 0 {
		l.log.Warn("output was cut", "bytes", over)
	}
}

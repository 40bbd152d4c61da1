// Package script runs the scripts of an operator on a host, as root.
package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// outputLimit is how much of the output of a script goes to the log, in bytes; the rest is counted.
	outputLimit = 64 << 10
	// tailLimit is how much of the end of its output the error shows, in bytes.
	tailLimit = 500
	// outputWait is how long the output is read for processes that the script has left running.
	outputWait = time.Second
)

// errLimit is the reason why a script was killed.
var errLimit = errors.New("it did not end within its time limit")

// Run runs a script with bash and logs its output. If a command in it fails, even in the middle of a pipe, the script fails.
// After limit, or when ctx is done, its whole process group is killed, which is an error.
func Run(ctx context.Context, path string, limit time.Duration, log hclog.Logger) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	out := &lines{log: log}
	cmd := exec.CommandContext(ctx, "/bin/bash", "-e", "-o", "pipefail", path)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = Environment(), "/", out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputWait
	err := cmd.Run()
	out.flush()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a service that it has started may go on writing
		return nil
	case errors.Is(context.Cause(ctx), errLimit):
		err = fmt.Errorf("%w of %s", errLimit, limit)
	}
	return fmt.Errorf("run %s: %w: %s", path, err, bytes.TrimSpace(out.tail))
}

// Environment is the environment of commands that run as root: nothing of that of this process.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LOGNAME=root", "LANG=C.UTF-8"}
}

// lines logs what is written to it line by line, up to outputLimit.
type lines struct {
	log     hclog.Logger
	line    []byte
	tail    []byte
	written int
}

func (l *lines) Write(data []byte) (int, error) {
	l.tail = append(l.tail, data...)
	if over := len(l.tail) - tailLimit; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	room := max(outputLimit-l.written, 0)
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
	l.log.Info("output", logkey.Line, string(bytes.ToValidUTF8(l.line, []byte("?"))))
	l.line = l.line[:0]
}

// flush logs the last line if it has no end, and how much output was dropped.
func (l *lines) flush() {
	if len(l.line) > 0 {
		l.say()
	}
	if over := l.written - outputLimit; over > 0 {
		l.log.Warn("output truncated", logkey.Bytes, over)
	}
}

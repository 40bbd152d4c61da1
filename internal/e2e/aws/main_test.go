// Package aws_test proves a fleet in AWS with real processes: controld against
// DynamoDB Local and moto, and an agentd for every instance that runs there.
package aws_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testrun.System.Remove()
	testrun.Older.Remove()
	os.Exit(code)
}

// process is a program under test, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// start starts a program of a directory.
func start(t testing.TB, out *buffer, env []string, programs, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(filepath.Join(programs, program), args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its output
		close(p.exited)
	}()
	return p
}

// kill ends the whole group, as the end of a machine does.
func (p *process) kill() {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		panic(err)
	}
	<-p.exited
}

// ready waits for a program's ready line and returns what it says under a name.
func (p *process) ready(t testing.TB, out *buffer, names ...string) []string {
	t.Helper()
	for deadline := time.Now().Add(8 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(out.String()) {
			if fields, ok := strings.CutPrefix(line, "ready "); ok && strings.HasSuffix(line, "\n") {
				return values(fields, names)
			}
		}
		select {
		case <-p.exited:
			t.Fatalf("it ended before it was ready:\n%s", out)
		default:
		}
	}
	t.Fatalf("it was not ready within two minutes:\n%s", out)
	return nil
}

func values(fields string, names []string) []string {
	var found []string
	for _, name := range names {
		for _, field := range strings.Fields(fields) {
			if value, ok := strings.CutPrefix(field, name+"="); ok {
				found = append(found, value)
			}
		}
	}
	return found
}

// buffer may be written by a process while a test reads it.
type buffer struct {
	local.Log
	also *buffer // gets everything too, if it is there
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.also != nil {
		_, _ = b.also.Write(p) // a buffer takes everything
	}
	return b.Log.Write(p)
}

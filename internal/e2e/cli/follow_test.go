package cli_test

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// running is a command that has not ended.
type running struct {
	*stage
	cmd            *exec.Cmd
	stdout, stderr *bufio.Reader
}

func (s *stage) begin(args ...string) *running {
	s.Helper()
	r := &running{stage: s, cmd: s.command(args...)}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	r.stdout, r.stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	return r
}

// until reads lines until one has a part, and returns that one.
func (r *running) until(from *bufio.Reader, part string) string {
	r.Helper()
	var seen strings.Builder
	for {
		line, err := from.ReadString('\n')
		seen.WriteString(line)
		if strings.Contains(line, part) {
			return line
		}
		if err != nil {
			r.Fatalf("the output ended without %q: %v\n%s", part, err, &seen)
		}
	}
}

// interrupt is Ctrl-C. It returns the exit code and what was left on stderr.
func (r *running) interrupt() (int, string) {
	r.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		r.Fatal(err)
	}
	text, _ := io.ReadAll(r.stderr) // its end is that of the process
	return r.code(r.cmd.Wait()), string(text)
}

// TestEvents: events come as they happen, and Ctrl-C is how a person leaves.
func TestEvents(t *testing.T) {
	s := newStage(t)
	all, other := s.begin("events"), s.begin("events", "--pool", "default", "--run", "acme/shop/42", "-o", "json")
	all.until(all.stdout, "TIME")
	s.must("provision", "acme/shop/41")
	all.until(all.stdout, "registered for run 41")
	s.must("provision", "acme/shop/42")
	if line := other.until(other.stdout, "ACTION_LAUNCH"); !strings.Contains(line, `"runId":"42"`) {
		t.Errorf("the first event is %s", line)
	}
	for _, r := range []*running{all, other} {
		if code, stderr := r.interrupt(); code != 0 || stderr != "" {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	}
}

// TestHistoryThenNow: of a run, what happened comes first and each event once.
func TestHistoryThenNow(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41")
	r := s.begin("events", "--run", "acme/shop/41")
	r.until(r.stdout, "registered for run 41")
	s.must("release", "acme/shop/41")
	if line := r.until(r.stdout, "41"); strings.Contains(line, "registered") {
		t.Errorf("twice: %s", line)
	}
	r.until(r.stdout, "released")
	if code, stderr := r.interrupt(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestWatch: a list comes again and again, and an end of controld does not end it.
func TestWatch(t *testing.T) {
	s := newStage(t)
	r := s.begin("pools", "--watch=100ms")
	for range 3 {
		r.until(r.stdout, "default")
	}
	s.must("provision", "acme/shop/41")
	r.until(r.stdout, "default  1 ")
	if code, stderr := r.interrupt(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestProvisionIsInterrupted: it says what it waits for, and after Ctrl-C what becomes of the request.
func TestProvisionIsInterrupted(t *testing.T) {
	s := newStageWith(t, "compute: {process: {boot_delay: 1m}}")
	r := s.begin("provision", "acme/shop/41")
	r.until(r.stderr, "waiting for hosts")
	code, stderr := r.interrupt()
	if code != 130 || !strings.Contains(stderr, "The request goes on") || !strings.Contains(stderr, "`remuda release acme/shop 41`") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s.must("why", "acme/shop/41") // it is known
}

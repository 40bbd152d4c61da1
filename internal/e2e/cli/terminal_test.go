package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a command on a terminal of its own, and what it showed so far.
type terminal struct {
	*stage
	cmd   *exec.Cmd
	keys  *os.File
	shown strings.Builder
}

// onTerminal starts a command on a new terminal.
func (s *stage) onTerminal(environ []string, args ...string) *terminal {
	s.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = keys.Close() })
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		s.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 160}); err != nil {
		s.Fatal(err)
	}
	t := &terminal{stage: s, cmd: s.command(args...), keys: keys}
	t.cmd.Env = append(t.cmd.Env, append([]string{"TERM=xterm", "NO_COLOR="}, environ...)...)
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = screen, screen, screen
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := t.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	_ = screen.Close() // the command has it
	return t
}

// until reads until a text was shown.
func (t *terminal) until(part string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(t.shown.String(), part) {
		n, err := t.keys.Read(buffer)
		t.shown.Write(buffer[:n])
		if err != nil {
			t.Fatalf("the command ended without %q: %v\n%q", part, err, t.shown.String())
		}
	}
}

// press types keys.
func (t *terminal) press(keys string) {
	t.Helper()
	if _, err := io.WriteString(t.keys, keys); err != nil {
		t.Fatal(err)
	}
}

// end is the exit code and all that was shown.
func (t *terminal) end() (int, string) {
	t.Helper()
	rest, _ := io.ReadAll(t.keys) // it ends with an error: the terminal is gone
	t.shown.Write(rest)
	return t.code(t.cmd.Wait()), strings.ReplaceAll(t.shown.String(), "\r\n", "\n")
}

// TestColors: a terminal gets colors, unless it or its person wants none. A pipe gets none.
func TestColors(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41")
	const green = "\x1b[32mrunning\x1b[0m"
	for environ, want := range map[string]bool{"X=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		if code, shown := s.onTerminal([]string{environ}, "ps").end(); code != 0 || strings.Contains(shown, green) != want || strings.Contains(shown, "\x1b") != want {
			t.Errorf("%s: exit code %d, %q", environ, code, shown)
		}
	}
	if got := s.must("ps"); strings.Contains(got, "\x1b") {
		t.Errorf("a pipe: %q", got)
	}
	if code, shown := s.onTerminal(nil, "ps", "-o", "json").end(); code != 0 || strings.Contains(shown, "\x1b") {
		t.Errorf("JSON: %d, %q", code, shown)
	}
}

// TestConfirm: on a terminal an end is asked for, and only a yes is one.
func TestConfirm(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41")
	id := s.hosts()[0].ID
	for _, test := range []struct {
		keys string
		code int
		left int
	}{{"\n", 1, 1}, {"n\n", 1, 1}, {"\x04", 1, 1}, {"\x03", 1, 1}, {"yes\n", 0, 0}} {
		c := s.onTerminal(nil, "terminate", id, "--reason", "a test")
		c.until("End this host? [y/N] ")
		c.press(test.keys)
		code, shown := c.end()
		if !strings.Contains(shown, id) {
			t.Errorf("%q: the host is not shown: %q", test.keys, shown)
		}
		if test.keys == "\x03" { // Ctrl-C
			test.code = 130
		}
		if left := s.hosts(); code != test.code || len(left) != test.left {
			t.Errorf("%q: exit code %d, %d hosts are left; want %d, %d\n%s", test.keys, code, len(left), test.code, test.left, shown)
		}
	}
}

// TestProgress: on a terminal the wait is on one line, which is gone at the end.
func TestProgress(t *testing.T) {
	s := newStageWith(t, "compute: {process: {boot_delay: 3s}}")
	c := s.onTerminal(nil, "provision", "acme/shop/41")
	c.until("waiting for hosts")
	code, shown := c.end()
	if code != 0 || !strings.Contains(shown, "\r\x1b[K") || !strings.Contains(shown, "0 of the pool, 1 launched") {
		t.Errorf("exit code %d, %q", code, shown)
	}
	if before, _, _ := strings.Cut(shown, "0 of the pool"); !strings.HasSuffix(before, "\r\x1b[K") {
		t.Errorf("the line of progress is still there: %q", shown)
	}
}

// TestWatchOnTerminal: each look begins with a new screen.
func TestWatchOnTerminal(t *testing.T) {
	s := newStage(t)
	c := s.onTerminal(nil, "pools", "--watch=100ms")
	c.until("default")
	c.press("\x03")
	if code, shown := c.end(); code != 0 || !strings.HasPrefix(shown, "\x1b[H\x1b[2J") {
		t.Errorf("exit code %d, %q", code, shown)
	}
}

// TestTop: the live view shows hosts, explains, holds and drains by keys, and gives the terminal back. Without a terminal it is refused.
func TestTop(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41")
	id := s.hosts()[0].ID
	top := s.onTerminal([]string{"NO_COLOR=1"}, "top")
	top.until(id)
	top.press("\r")
	top.until("acme/shop")
	top.press("\x1b[D") // left; escape and h would be Alt-h
	top.press("h")
	top.until("held")
	if got := s.must("ps", "--state", "held"); !strings.Contains(got, id) {
		t.Errorf("%s is not held:\n%s", id, got)
	}
	top.press("d")
	top.until("[y/N]")
	top.press("y")
	for !strings.Contains(s.must("ps", "--state", "retiring"), id) { // until the time of the test is over: the question has the words of the answer
	}
	top.press("q")
	if code, shown := top.end(); code != 0 || !strings.Contains(shown, "\x1b[?1049l") {
		t.Errorf("exit code %d, and the screen is not given back: %q", code, shown)
	}
	s.fails(2, "ps --watch", "top")
}

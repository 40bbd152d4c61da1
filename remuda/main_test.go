package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// The built command is driven in internal/e2e/cli. Here it runs in the process of the test, and so under the race
// detector: what shows progress, what waits for an answer, and what follows.

func TestMain(m *testing.M) {
	code := m.Run()
	testrun.System.Remove()
	os.Exit(code)
}

// screen keeps what is printed, and tells when something was.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	waiting map[string]chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(p)
	for part, shown := range s.waiting {
		if strings.Contains(s.text.String(), part) {
			close(shown)
			delete(s.waiting, part)
		}
	}
	return n, err
}

// shows is closed once a text was printed.
func (s *screen) shows(part string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := make(chan struct{})
	if strings.Contains(s.text.String(), part) {
		close(shown)
	} else {
		s.waiting[part] = shown
	}
	return shown
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// person is an App on a terminal, and what it shows.
func person(stdin io.Reader, address string) (*cli.App, *screen) {
	s := &screen{waiting: map[string]chan struct{}{}}
	return &cli.App{
		Stdin: stdin, Stdout: s, Stderr: s, InTerminal: true, OutTerminal: true, ErrTerminal: true,
		Getenv: func(string) string { return "" }, Now: time.Now, ReadSnapshot: readSnapshot, Globals: cli.Globals{Output: output.Table, Address: address},
	}, s
}

// during runs a command until it has shown a text, and then cancels it, as Ctrl-C does.
func during(t *testing.T, address, part string, args ...string) (failure.Code, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	input, _ := io.Pipe() // nothing is typed
	app, screen := person(input, address)
	shown := screen.shows(part)
	code := make(chan failure.Code)
	go func() { code <- run(ctx, app, append([]string{"--address", address}, args...)) }()
	select {
	case <-shown:
		cancel()
		return <-code, screen.String()
	case got := <-code:
		t.Errorf("%v ended before it showed %q: exit code %d\n%s", args, part, got, screen)
		return got, screen.String()
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "controld.yaml")
	if err := os.WriteFile(config, []byte("compute: {process: {boot_delay: 4s}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &local.Log{}
	system, err := local.Start(t.Context(), local.Options{Bin: testrun.System.Dir(t), StateDir: filepath.Join(dir, "state"), Config: config, Stderr: log})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	defer func() {
		if err := system.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, test := range []struct {
		part string
		code failure.Code
		args []string
	}{
		{"TIME", failure.OK, []string{"events"}},
		{"POOL", failure.OK, []string{"pools", "--watch=100ms"}},
		{"waiting for hosts", failure.Interrupted, []string{"provision", "acme/shop/41"}},
		{"[y/N]", failure.Interrupted, []string{"drain", "--all"}},
	} {
		if code, shown := during(t, system.GRPCAddr, test.part, test.args...); code != test.code {
			t.Errorf("%v: exit code %d, want %d\n%s", test.args, code, test.code, shown)
		}
	}
	app, shown := person(strings.NewReader("y\n"), system.GRPCAddr)
	if code := run(t.Context(), app, []string{"--address", system.GRPCAddr, "drain", "--all"}); code != failure.OK || !strings.Contains(shown.String(), "1 drained") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
}

// TestWords: each command has one line of help, an argument rule, examples that begin with the command, and flags that name their values.
func TestWords(t *testing.T) {
	app, _ := person(nil, "")
	for _, c := range newRoot(app).Commands() {
		if c.Short == "" || c.GroupID == "" || c.Args == nil && c.Name() != "hold" && c.Name() != "drain" {
			t.Errorf("%s has no help, group or rule for its arguments", c.Name())
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, "remuda "+c.Name()) {
				t.Errorf("%s has the example %q", c.Name(), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); value != strings.ToUpper(value) {
				t.Errorf("%s --%s names no value, and its help shows %q", c.Name(), f.Name, value)
			}
		})
	}
}

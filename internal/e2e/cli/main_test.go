// Package cli_test drives the command remuda, as it is built, against a controld with real hosts.
package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// within bounds each test; a healthy one takes seconds, and many times that where much else runs.
const within = 2 * time.Minute

func TestMain(m *testing.M) {
	code := m.Run()
	testrun.System.Remove()
	os.Exit(code)
}

// stage is a controld, and a person who calls it.
type stage struct {
	*testing.T
	*local.System
	ctx context.Context
	log *local.Log
	// config is the person's file of contexts.
	config string
}

// newStage starts `controld dev`, and makes it the person's current context.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := newPerson(t)
	s.start(local.Options{StateDir: filepath.Join(t.TempDir(), "state")})
	s.must("login", "dev", "--address", s.GRPCAddr)
	return s
}

// newStageWith is newStage with a configuration.
func newStageWith(t *testing.T, configuration string) *stage {
	t.Helper()
	s := newPerson(t)
	path := filepath.Join(t.TempDir(), "controld.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(local.Options{StateDir: filepath.Join(t.TempDir(), "state"), Config: path})
	s.must("login", "dev", "--address", s.GRPCAddr)
	return s
}

// newPerson is a stage without a controld.
func newPerson(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return &stage{T: t, ctx: ctx, log: &local.Log{}, config: filepath.Join(t.TempDir(), "config.yaml")}
}

func (s *stage) start(o local.Options) {
	s.Helper()
	o.Bin, o.Stderr = testrun.System.Dir(s.T), s.log
	var err error
	if s.System, err = local.Start(s.ctx, o); err != nil {
		s.Fatalf("%v\n%s", err, s.log)
	}
	s.Cleanup(func() {
		if err := s.Stop(); err != nil {
			s.Errorf("%v", err)
		}
		if left, err := local.Processes(o.StateDir); err != nil || len(left) > 0 {
			s.Errorf("processes left after the end: %v %v", left, err)
		}
		if s.Failed() {
			s.Logf("controld's log:\n%s", s.log)
		}
	})
}

// result is how a call ended.
type result struct {
	code           int
	stdout, stderr string
}

// command is a call that was not started.
func (s *stage) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, filepath.Join(testrun.System.Dir(s.T), "remuda"), args...)
	cmd.Env = append(os.Environ(), "REMUDA_CONFIG="+s.config, "TZ=UTC")
	return cmd
}

func (s *stage) remuda(args ...string) result {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return result{s.code(cmd.Run()), stdout.String(), stderr.String()}
}

func (s *stage) code(err error) int {
	s.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// must is the output of a call that succeeds.
func (s *stage) must(args ...string) string {
	s.Helper()
	r := s.remuda(args...)
	if r.code != 0 {
		s.Fatalf("remuda %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// fails is a call that ends with a code, and whose error has a part.
func (s *stage) fails(code int, part string, args ...string) {
	s.Helper()
	r := s.remuda(args...)
	if r.code != code || !strings.Contains(r.stderr, part) {
		s.Errorf("remuda %s: exit code %d, want %d with %q\n%s%s", strings.Join(args, " "), r.code, code, part, r.stdout, r.stderr)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// TestMain lets the test binary stand in for controld, by the name that it is
// called with: what is tested is this code, with the race detector in it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "controld" {
		main()
	}
	// A program with the race detector sleeps a second before it ends.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err) // the name is a valid one
	}
	testrun.Together()
	code := m.Run()
	testrun.System.Remove()
	testrun.GRPCurl.Remove()
	if binDir != "" {
		_ = os.RemoveAll(binDir) // a leftover in the temporary directory does no harm
	}
	os.Exit(code)
}

// binDir is the directory with the programs that dev wants beside each other,
// once a test has asked for it.
var (
	binDir  string
	binOnce sync.Once
	errBin  error
)

// programsBesideEachOther is that directory; its controld is this test binary.
func programsBesideEachOther(t *testing.T) string {
	t.Helper()
	built := testrun.System.Dir(t)
	binOnce.Do(func() {
		if binDir, errBin = os.MkdirTemp("", "remuda-controld-bin-"); errBin != nil {
			return
		}
		errBin = errors.Join(
			copyProgram(filepath.Join(binDir, "controld"), "/proc/self/exe"),
			os.Symlink(filepath.Join(built, "agentd"), filepath.Join(binDir, "agentd")),
			os.Symlink(filepath.Join(built, "standin-runner"), filepath.Join(binDir, "standin-runner")))
	})
	if errBin != nil {
		t.Fatal(errBin)
	}
	return binDir
}

func copyProgram(to, from string) error {
	program, err := os.Open(from)
	if err != nil {
		return err
	}
	defer program.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, program)
	return errors.Join(err, f.Close())
}

// result is what a call of controld came to.
type result struct {
	code           int
	stdout, stderr string
}

// controld calls run as main does.
func controld(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var stdout, stderr bytes.Buffer
	err := run(ctx, args, &stdout, &stderr)
	if err != nil && !errors.Is(err, errTold) {
		fmt.Fprintln(&stderr, "controld:", err)
	}
	return result{exitCode(err), stdout.String(), stderr.String()}
}

// inputsOf reads what a configuration names.
func inputsOf(t *testing.T, c *config.Config) *inputs.Inputs {
	t.Helper()
	in, err := inputs.Of("the configuration", c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCommandLines are calls that end at once. Each of says must be in what is
// printed.
func TestCommandLines(t *testing.T) {
	wrong := write(t, "wrong.yaml", "grpc:\n  addr: 0.0.0.0:7443\ntimeouts:\n  idle: \"5\"\n")
	tokenless := write(t, "tokenless.yaml", "github:\n  token_env: REMUDA_TEST_NO_SUCH_TOKEN\ngrpc:\n  addr: 127.0.0.1:0\nhttp:\n  addr: 127.0.0.1:0\n")
	file := write(t, "file", "")
	tests := map[string]struct {
		args []string
		code int
		says []string
	}{
		"nothing":              {nil, 2, []string{"controld dev [flags]  ", "no command is given"}},
		"help":                 {[]string{"--help"}, 0, []string{"controld serve --config FILE  "}},
		"version":              {[]string{"version"}, 0, []string{"controld ", "commit ", "go1."}},
		"version as a flag":    {[]string{"--version"}, 0, []string{"controld ", "commit ", "go1."}},
		"version of a version": {[]string{"--version", "now"}, 2, []string{`"now" is one argument too many`}},
		"unknown command":      {[]string{"sreve"}, 2, []string{`"sreve" is not a command`, "commands: dev, serve, config check"}},
		"half a command":       {[]string{"config"}, 2, []string{`"config" is not a command`, "config check"}},
		"unknown flag":         {[]string{"dev", "--bogus"}, 2, []string{"-bogus", "usage: controld dev", "controld dev --help"}},
		"one argument more":    {[]string{"version", "now"}, 2, []string{`"now" is one argument too many`}},
		"help of a command":    {[]string{"dev", "--help"}, 0, []string{"usage: controld dev [flags]", "  --github-addr ADDR  ", "(127.0.0.1:7081)"}},
		"check without a file": {[]string{"config", "check"}, 2, []string{"config check needs [--aws | --dev | --elsewhere] FILE"}},
		"check of no file":     {[]string{"config", "check", wrong + ".none"}, 1, []string{"no such file"}},
		"check of a wrong file": {[]string{"config", "check", wrong}, 1, []string{
			wrong + ":2:3: grpc.addr: is reached from other machines in plaintext",
			wrong + ":4:9: timeouts.idle: \"5\" is not a duration",
			": github: has no token",
		}},
		"check of a good file":       {[]string{"config", "check", "--elsewhere", "../examples/controld.yaml"}, 0, []string{"controld.yaml: ok", "warning: pool build is privileged"}},
		"serve without a file":       {[]string{"serve"}, 2, []string{"--config is required"}},
		"serve with no file":         {[]string{"serve", "--config", wrong + ".none"}, 78, []string{"no such file"}},
		"serve with a wrong file":    {[]string{"serve", "--config", wrong}, 78, []string{"the configuration is wrong:\n" + wrong + ":"}},
		"serve without a token":      {[]string{"serve", "--config", tokenless}, 78, []string{"github.token_env: ", "empty"}},
		"dev off loopback":           {[]string{"dev", "--http-addr", "0.0.0.0:7080"}, 2, []string{"--http-addr 0.0.0.0:7080: not a loopback address"}},
		"dev with no address":        {[]string{"dev", "--grpc-addr", "7443"}, 2, []string{"--grpc-addr 7443: not an address"}},
		"dev without a directory":    {[]string{"dev", "--state-dir", ""}, 2, []string{"--state-dir is empty"}},
		"dev that boots too soon":    {[]string{"dev", "--boot-time", "-1s"}, 2, []string{"--boot-time -1s is negative"}},
		"dev in a file":              {[]string{"dev", "--state-dir", file}, 1, []string{"--state-dir " + file + ": "}},
		"dev below a file":           {[]string{"dev", "--state-dir", file + "/dev"}, 1, []string{"--state-dir " + file + "/dev: make it: "}},
		"stand-in without flags":     {[]string{"github-standin"}, 2, []string{"--addr and --state-dir are required"}},
		"stand-in off loopback":      {[]string{"github-standin", "--addr", ":7081", "--state-dir", t.TempDir()}, 2, []string{"--addr :7081: not a loopback address"}},
		"stand-in in a file":         {[]string{"github-standin", "--addr", "127.0.0.1:0", "--state-dir", file}, 1, []string{"--state-dir " + file + ": "}},
		"stand-in with a hidden arg": {[]string{"github-standin", "x"}, 2, []string{`"x" is one argument too many`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := controld(t, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			for _, says := range test.says {
				if !strings.Contains(got.stdout+got.stderr, says) {
					t.Errorf("it does not say %q", says)
				}
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
			}
		})
	}
}

func TestUsageIsAligned(t *testing.T) {
	column := -1
	for line := range strings.Lines(usage()) {
		if !strings.HasPrefix(line, "  controld ") {
			continue
		}
		at := strings.LastIndex(line, "  ")
		if column >= 0 && at != column {
			t.Errorf("the summary is in column %d, that of the line before in %d: %q", at, column, line)
		}
		column = at
	}
}

func TestStopIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error, 1)
	done <- errors.New("as it ended")
	if err := wait(ctx, done); err == nil || err.Error() != "as it ended" {
		t.Errorf("wait returns %v", err)
	}
}

// TestVersions: each program says which build it is, by a command and by a flag.
func TestVersions(t *testing.T) {
	dir := programsBesideEachOther(t)
	for _, name := range []string{"controld", "agentd", "standin-runner"} {
		var said []string
		for _, arg := range []string{"version", "--version"} {
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), arg).CombinedOutput()
			if err != nil {
				t.Errorf("%s %s: %v\n%s", name, arg, err, out)
			}
			said = append(said, string(out))
		}
		if said[0] != said[1] || !strings.HasPrefix(said[0], name+" ") || !strings.Contains(said[0], "go1.") {
			t.Errorf("%s says %q", name, said)
		}
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/host"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agentd.yaml")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const smallest = `
instance_id: i-1
directory: /var/lib/remuda
store: {sqlite: {path: /var/lib/remuda.db}}
runner: {distribution: /opt/runner}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	want := defaultConfig()
	want.InstanceID, want.HostKey, want.Directory = "i-1", "i-1", "/var/lib/remuda"
	want.Store.SQLite.Path, want.Runner.Distribution = "/var/lib/remuda.db", "/opt/runner"
	got, err := readConfig(configFile(t, smallest))
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("smallest (-want +got):\n%s", diff)
	}

	want.HostKey = "AROA:i-1"
	want.Runner.Env, want.Runner.MinimumFreeMiB = map[string]string{"A": "b"}, 5
	want.PreRunner = preRunner{Script: "/opt/pre.sh", Timeout: time.Minute}
	want.BootTimeout = 5 * time.Minute
	want.Intervals = intervals{ReadIdle: time.Second, ReadRunning: 10 * time.Second, Heartbeat: 20 * time.Second}
	want.LogLevel, want.LogFormat = "debug", "json"
	got, err = readConfig(configFile(t, strings.Replace(smallest, "{distribution: /opt/runner}",
		"{distribution: /opt/runner, env: {A: b}, minimum_free_mib: 5}", 1)+`
host_key: AROA:i-1
pre_runner: {script: /opt/pre.sh, timeout: 1m}
boot_timeout: 5m
intervals: {read_idle: 1s, read_running: 10s, heartbeat: 20s}
log_level: debug
log_format: json
`))
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// Everything that is wrong is said at once, with its place.
func TestConfigProblems(t *testing.T) {
	t.Parallel()
	_, err := readConfig(configFile(t, `instance_id: ""
directory: relative
store: {sqlite: {}}
runner: {distribution: /opt/runner, minimum_free_mib: -1, env: {"A=B": c}}
pre_runner: {script: pre.sh, timeout: 2h}
boot_timeout: 0s
intervals: {read_idle: 1h, heartbeat: 1m, read_runing: 5s}
log_level: loud
log_format: xml
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"agentd.yaml:1:1: instance_id", "agentd.yaml:2:1: directory", "store.sqlite.path", "runner.minimum_free_mib", "runner.env",
		"pre_runner.script", "pre_runner.timeout", "boot_timeout", "intervals.read_idle", "intervals.heartbeat",
		"read_runing", "log_level", "log_format",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want int
	}{
		"configuration": {&configError{errors.New("x")}, 78},
		"wrapped":       {errors.Join(errors.New("x"), &configError{errors.New("y")}), 78},
		"in use":        {host.ErrInUse, 1},
		"stopped":       {errStopped, 1},
	}
	for name, test := range tests {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want int // exit code
	}{
		"version":            {[]string{"version"}, 0},
		"help":               {[]string{"--help"}, 0},
		"nothing":            {nil, 78},
		"an unknown flag":    {[]string{"--confg", "x"}, 78},
		"an unknown command": {[]string{"--config", "x", "start"}, 78},
		"no such file":       {[]string{"--config", filepath.Join(t.TempDir(), "none")}, 78},
		"no distribution":    {[]string{"--config", configFile(t, smallest)}, 78},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := 0
			if err := command(t.Context(), test.args); err != nil {
				got = exitCode(err)
			}
			if got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/forkcheck"
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
	want.Store.SQLite, want.Runner.Distribution = &sqliteConfig{Path: "/var/lib/remuda.db"}, "/opt/runner"
	got, err := readConfig(configFile(t, smallest))
	check(t, err)
	want.Path = got.Path
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("smallest (-want +got):\n%s", diff)
	}

	want.HostKey = "AROA:i-1"
	want.Runner.Env, want.Runner.MinimumFreeMiB = map[string]string{"A": "b"}, 5
	want.PreRunner = hookConfig{Script: "/opt/pre.sh", Timeout: time.Minute}
	want.BootTimeout = 5 * time.Minute
	want.Intervals = intervals{ReadIdle: time.Second, ReadStandby: 3 * time.Second, ReadRunning: 10 * time.Second, Heartbeat: 20 * time.Second}
	want.LogLevel, want.LogFormat = "debug", "json"
	got, err = readConfig(configFile(t, strings.Replace(smallest, "{distribution: /opt/runner}",
		"{distribution: /opt/runner, env: {A: b}, minimum_free_mib: 5}", 1)+`
host_key: AROA:i-1
pre_runner: {script: /opt/pre.sh, timeout: 1m}
boot_timeout: 5m
intervals: {read_idle: 1s, read_standby: 3s, read_running: 10s, heartbeat: 20s}
log_level: debug
log_format: json
`))
	check(t, err)
	want.Path = got.Path
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

const onEC2 = `
directory: /var/lib/remuda
store: {dynamodb: {}}
runner: {distribution: /opt/runner}
`

func TestConfigOnEC2(t *testing.T) {
	t.Parallel()
	plain := defaultConfig()
	plain.Directory, plain.Runner.Distribution = "/var/lib/remuda", "/opt/runner"
	plain.Store.DynamoDB = &dynamodbConfig{Prefix: "remuda"}
	got, err := readConfig(configFile(t, onEC2))
	check(t, err)
	plain.Path = got.Path
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("without a host file (-want +got):\n%s", diff)
	}

	host := filepath.Join(t.TempDir(), "host.json")
	check(t, os.WriteFile(host, []byte(`{"region":"eu-west-1","prefix":"acme","pool":"build","pre_runner":"/etc/remuda/pre-runner","jobs_read_metadata":true}`), 0o600))
	launched := plain
	launched.HostFile = host
	launched.Host = hostFile{Region: "eu-west-1", Prefix: "acme", Pool: "build", PreRunner: "/etc/remuda/pre-runner", JobsReadMetadata: true}
	launched.Store.DynamoDB = &dynamodbConfig{Prefix: "acme", Region: "eu-west-1"}
	launched.PreRunner.Script = "/etc/remuda/pre-runner"
	got, err = readConfig(configFile(t, onEC2+"host_file: "+host))
	check(t, err)
	launched.Path = got.Path
	if diff := cmp.Diff(launched, got); diff != "" {
		t.Errorf("with a host file (-want +got):\n%s", diff)
	}

	launched.Store.DynamoDB = &dynamodbConfig{Prefix: "other", Region: "us-east-1"}
	launched.PreRunner.Script, launched.PowerOff = "/opt/pre.sh", []string{"/sbin/poweroff", "-f"}
	got, err = readConfig(configFile(t, strings.Replace(onEC2, "{dynamodb: {}}", "{dynamodb: {prefix: other, region: us-east-1}}", 1)+
		"power_off: [/sbin/poweroff, -f]\npre_runner: {script: /opt/pre.sh}\nhost_file: "+host))
	check(t, err)
	launched.Path = got.Path
	if diff := cmp.Diff(launched, got); diff != "" {
		t.Errorf("what is written here counts over the host file (-want +got):\n%s", diff)
	}
}

func TestHostFileProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown key":   {`{"regoin": "eu-west-1"}`, []string{"host.json:1:2: regoin: is not known; did you mean region?"}},
		"no region":     {`{"region": "Ireland"}`, []string{"host.json:1:2: region", "write a region such as eu-west-1"}},
		"no prefix":     {`{"prefix": "A/B"}`, []string{"prefix"}},
		"relative path": {`{"pre_runner": "pre"}`, []string{"pre_runner", "write an absolute path"}},
		"damaged":       {`{"region`, []string{"host.json"}},
	}
	for name, test := range tests {
		host := filepath.Join(t.TempDir(), "host.json")
		check(t, os.WriteFile(host, []byte(test.text), 0o600))
		_, err := readConfig(configFile(t, onEC2+"host_file: "+host))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in:\n%v", name, want, err)
			}
		}
	}
	_, err := readConfig(configFile(t, onEC2+"host_file: /nowhere/host.json"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "which user data writes") {
		t.Errorf("no host file: %v", err)
	}
}

// The host file may come after the agent: cloud-init's units have had other names.
func TestTheHostFileIsAwaited(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.json")
	path := configFile(t, onEC2+"host_file: "+host)
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(5*time.Second, func() {
			check(t, os.WriteFile(host+".new", []byte(`{"region":"eu-west-1"}`), 0o600))
			check(t, os.Rename(host+".new", host))
		})
		if c, err := awaitConfig(t.Context(), path); err != nil || c.Host.Region != "eu-west-1" {
			t.Errorf("region %q, error %v", c.Host.Region, err)
		}
		check(t, os.Remove(host))
		began := time.Now()
		if _, err := awaitConfig(t.Context(), path); !errors.Is(err, os.ErrNotExist) || time.Since(began) > hostFileWait+time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A stand-in for the metadata says that this machine is not the instance: it is
// not to be powered off by default.
func TestPowerOffCommand(t *testing.T) {
	t.Setenv(metadataEndpoint, "")
	c := defaultConfig()
	if diff := cmp.Diff([]string{"systemctl", "poweroff"}, c.powerOff()); diff != "" {
		t.Errorf("on the instance (-want +got):\n%s", diff)
	}
	t.Setenv(metadataEndpoint, "http://127.0.0.1:1")
	if got := c.powerOff(); len(got) > 0 {
		t.Errorf("on another machine: %q", got)
	}
	c.PowerOff = []string{"true"}
	if diff := cmp.Diff([]string{"true"}, c.powerOff()); diff != "" {
		t.Errorf("as configured (-want +got):\n%s", diff)
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

func TestStoreProblems(t *testing.T) {
	t.Parallel()
	const rest = "\ndirectory: /var/lib/remuda\nrunner: {distribution: /opt/runner}\n"
	tests := map[string]struct {
		text string
		want []string
	}{
		"no store":         {"instance_id: i-1", []string{"store: is missing; write sqlite or dynamodb"}},
		"an empty one":     {"store: {}", []string{"store: is missing; write sqlite or dynamodb"}},
		"both":             {"instance_id: i-1\nstore: {sqlite: {path: /x}, dynamodb: {}}", []string{"store: has sqlite and dynamodb; remove one"}},
		"no identity":      {"store: {sqlite: {path: /x}}", []string{"instance_id: is missing"}},
		"only a key":       {"host_key: A:i-1\nstore: {dynamodb: {}}", []string{"host_key: is there without instance_id"}},
		"words of EC2":     {"instance_id: i-1\nhost_file: /x\npower_off: [x]\nstore: {sqlite: {path: /x}}", []string{"host_file: is for store.dynamodb", "power_off: is for EC2"}},
		"no such names":    {"store: {dynamodb: {prefix: A_B, region: here}}", []string{"store.dynamodb.prefix: is \"A_B\"", "store.dynamodb.region: is \"here\""}},
		"an empty command": {"power_off: [\"\"]\nhost_file: x\nstore: {dynamodb: {}}", []string{"power_off[0]: is empty", "host_file: is \"x\""}},
	}
	for name, test := range tests {
		_, err := readConfig(configFile(t, test.text+rest))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in:\n%v", name, want, err)
			}
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
		"a fork":        {forkcheck.ErrFork, 1},
		"no payload":    {fmt.Errorf("%w: x", forkcheck.ErrUnreadable), 2},
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
		"version as a flag":  {[]string{"--version"}, 0},
		"version of a clean": {[]string{"clean", "--version"}, 78},
		"help":               {[]string{"--help"}, 0},
		"nothing":            {nil, 78},
		"an unknown flag":    {[]string{"--confg", "x"}, 78},
		"an unknown command": {[]string{"--config", "x", "start"}, 78},
		"a check with more":  {[]string{"check-fork", "event.json"}, 78},
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

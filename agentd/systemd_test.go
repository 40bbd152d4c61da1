package main

import (
	"os"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

func TestSystemdConfig(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want systemdConfig
	}{
		"defaults": {"systemd: {}", systemdConfig{User: "runner", Limits: limitConfig{Tasks: 32768, OpenFiles: 65536}}},
		"all": {"systemd: {user: ci, limits: {tasks: 500, open_files: 4096, memory_mib: 2048}}",
			systemdConfig{User: "ci", Limits: limitConfig{Tasks: 500, OpenFiles: 4096, MemoryMiB: 2048}}},
		"no limits": {"systemd: {limits: {tasks: 0, open_files: 0}}", systemdConfig{User: "runner"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readConfig(configFile(t, smallest+test.text+"\npost_release: {script: /opt/post.sh, timeout: 1m}\n"))
			check(t, err)
			if diff := cmp.Diff(&test.want, got.Systemd); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := (hookConfig{Script: "/opt/post.sh", Timeout: time.Minute}); got.PostRelease != want {
				t.Errorf("post_release %+v", got.PostRelease)
			}
		})
	}
}

func TestSystemdProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"root":                 {"systemd: {user: root}", `systemd.user: is "root"`},
		"no user":              {`systemd: {user: ""}`, `systemd.user: is ""`},
		"hardly any tasks":     {"systemd: {limits: {tasks: 5}}", "systemd.limits.tasks: is 5; write a number from 128"},
		"a negative limit":     {"systemd: {limits: {open_files: -1}}", "systemd.limits.open_files: is -1"},
		"hardly any memory":    {"systemd: {limits: {memory_mib: 1}}", "systemd.limits.memory_mib: is 1"},
		"a hook without units": {"post_release: {script: /opt/post.sh}", "post_release.script: is for hosts with systemd"},
		"a hook for long":      {"systemd: {}\npost_release: {script: /opt/post.sh, timeout: 10m}", "post_release.timeout: is 10m0s"},
		"a relative hook":      {"systemd: {}\npost_release: {script: post.sh}", `post_release.script: is "post.sh"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readConfig(configFile(t, smallest+test.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// Jobs run as the user of the configuration, who must exist, and may do nothing that the host file does not allow.
func TestSystemdHost(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	check(t, err)
	c := defaultConfig()
	c.Directory, c.Runner.Distribution, c.Path = "/var/lib/remuda", "/opt/runner", "/etc/remuda/agentd.yaml"
	c.Systemd = &systemdConfig{User: me.Username}
	found, err := c.system()
	check(t, err)
	s := c.systemd(found, 0, hclog.NewNullLogger())
	if s.Home != me.HomeDir || s.UID != os.Getuid() || s.GID != os.Getgid() || s.Privileged || s.JobsReadMetadata || len(s.Groups) > 0 {
		t.Errorf("%+v", s)
	}
	c.Systemd.User = "a-name-without-a-user"
	if _, err = c.system(); err == nil || !strings.Contains(err.Error(), "remuda-agentd makes the user runner") {
		t.Errorf("error %v", err)
	}
}

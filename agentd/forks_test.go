package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCheckFork runs the command as the job-started hook does. It needs no configuration, and nothing else in its environment changes what
// it answers.
func TestCheckFork(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	check(t, err)
	hostile := map[string][]string{
		"no environment":    nil,
		"little memory":     {"GOMEMLIMIT=1", "GOGC=1", "GOMAXPROCS=1"},
		"no collection":     {"GOMEMLIMIT=off", "GOGC=off", "GOMAXPROCS=4096"},
		"settings of Go":    {"GODEBUG=panicnil=1,asyncpreemptoff=1,inittrace=1,execerrdot=0,x=y", "GOTRACEBACK=crash"},
		"libraries":         {"LD_PRELOAD=/no/such/library.so", "LD_LIBRARY_PATH=/nowhere"},
		"no programs":       {"PATH=/nowhere", "HOME=/nowhere", "TMPDIR=/nowhere", "BASH_ENV=/nowhere", "ENV=/nowhere"},
		"what AWS would be": {"AWS_PROFILE=x", "AWS_CONFIG_FILE=/nowhere", "AWS_REGION=nowhere", "AWS_ENDPOINT_URL=http://127.0.0.1:1"},
	}
	const own, fork = `{"pull_request": {"head": {"repo": {"id": 7}}, "base": {"repo": {"id": 7}}}}`,
		`{"pull_request": {"head": {"repo": {"id": 8}}, "base": {"repo": {"id": 7}}}}`
	for payload, want := range map[string]int{own: 0, fork: 1, own[1:]: 2} {
		path := filepath.Join(t.TempDir(), "event.json")
		check(t, os.WriteFile(path, []byte(payload), 0o644))
		for name, env := range hostile {
			cmd := exec.Command(self, "check-fork")
			cmd.Env = append(env, "GITHUB_EVENT_PATH="+path, "GITHUB_EVENT_NAME=pull_request", "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%s, %s: exit status %d, want %d: %s", payload, name, got, want, out)
			}
		}
	}
}

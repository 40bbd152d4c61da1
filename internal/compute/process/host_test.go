package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestKilledAgentIsStartedAgain(t *testing.T) {
	dir := root(t)
	c := open(t, dir, `[ -e "$dir/runner.pids" ] || setsid sh -c 'echo $$ >"$1/runner.pids"; exec sleep 1000' sh "$dir" &`+"\n"+stays, nil)
	id, hostDir := launch(t, c, dir)
	runner := pids(t, filepath.Join(hostDir, "runner.pids"), 1)[0]
	killHard(t, pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0])
	again := pids(t, filepath.Join(hostDir, "agent.pids"), 2)[1]
	if !alive(again) || !alive(runner) {
		t.Errorf("agentd lives: %v, its runner lives: %v", alive(again), alive(runner))
	}
	if got := state(t, c, id); got != lifecycle.MachineRunning {
		t.Errorf("the host is %s", got)
	}
}

func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		code int
		ends bool
	}{
		"powered off":         {process.ExitPoweredOff, true},
		"bad configuration":   {process.ExitConfiguration, true},
		"failed":              {1, false},
		"misused, as by flag": {2, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := root(t)
			leftover := `setsid sh -c 'echo $$ >>"$1/left.pids"; exec sleep 1000' sh "$dir" & while ! [ -s "$dir/left.pids" ]; do sleep 0.01; done; `
			c := open(t, dir, starts+leftover+fmt.Sprintf("exit %d", test.code), nil)
			id, hostDir := launch(t, c, dir)
			if !test.ends {
				pids(t, filepath.Join(hostDir, "agent.pids"), 3)
				if got := state(t, c, id); got != lifecycle.MachineRunning {
					t.Errorf("the host is %s", got)
				}
				return
			}
			left := pids(t, filepath.Join(hostDir, "left.pids"), 1)[0]
			eventually(t, "the host is gone by itself", func() bool { return state(t, c, id) == lifecycle.MachineGone })
			if alive(left) {
				t.Error("a process outlived its host")
			}
		})
	}
}

// TestPoweredOffHostMakesRoom: also when it was not looked at in between.
func TestPoweredOffHostMakesRoom(t *testing.T) {
	dir := root(t)
	c := open(t, dir, starts+"exit 0", func(o *process.Options) { o.Capacity = map[string]int{"*": 1} })
	_, hostDir := launch(t, c, dir)
	init := initPID(t, hostDir)
	eventually(t, "init ends", func() bool { return !alive(init) })
	if _, err := c.Launch(t.Context(), order(2, 1)); err != nil {
		t.Errorf("launch: %v", err)
	}
}

func TestHostWithoutInitIsGone(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	id, hostDir := launch(t, c, dir)
	agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	killHard(t, initPID(t, hostDir))
	eventually(t, "the host is gone", func() bool { return state(t, c, id) == lifecycle.MachineGone })
	if alive(agent) {
		t.Error("agentd outlived its host")
	}
}

func initPID(t *testing.T, hostDir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(hostDir, "init.pid"))
	var pid int
	if _, scanErr := fmt.Sscan(string(data), &pid); err != nil || scanErr != nil {
		t.Fatalf("read pid of init: %v, %v", err, scanErr)
	}
	return pid
}

func TestBootDelay(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, func(o *process.Options) { o.BootDelay = time.Hour })
	id, hostDir := launch(t, c, dir)
	if got := state(t, c, id); got != lifecycle.MachinePending {
		t.Errorf("the host is %s while it boots", got)
	}
	if len(marked(t, id)) == 0 {
		t.Error("nothing boots")
	}
	terminate(t, c, id)
	if left := marked(t, id); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(filepath.Join(hostDir, "agent.pids")); err == nil {
		t.Error("agentd ran before the boot was over")
	}
}

func TestSession(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	_, hostDir := launch(t, c, dir)
	_, _, session, _ := stat(pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0])
	if init := initPID(t, hostDir); session != init {
		t.Errorf("agentd is in session %d, want that of init, %d", session, init)
	}
}

// TestReaped: init is our child, and nothing else would reap it.
func TestReaped(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	id, hostDir := launch(t, c, dir)
	init := initPID(t, hostDir)
	if _, parent, _, ok := stat(init); !ok || parent != os.Getpid() {
		t.Fatalf("init is the child of %d", parent)
	}
	terminate(t, c, id)
	eventually(t, "init is reaped", func() bool {
		_, parent, _, ok := stat(init)
		return !ok || parent != os.Getpid()
	})
}

// TestUnreadableTags: what a job did to the files of its host costs only
// the tags.
func TestUnreadableTags(t *testing.T) {
	spoil := map[string]func(tags string) error{
		"damaged":        func(tags string) error { return os.WriteFile(tags, []byte("{"), 0o600) },
		"another host's": func(tags string) error { return os.WriteFile(tags, []byte(`{"instanceId":"i-1"}`), 0o600) },
		"a pipe":         func(tags string) error { return errors.Join(os.Remove(tags), syscall.Mkfifo(tags, 0o600)) },
		"a link":         func(tags string) error { return errors.Join(os.Rename(tags, tags+"2"), os.Symlink(tags+"2", tags)) },
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			dir := root(t)
			c := open(t, dir, stays, nil)
			id, hostDir := launch(t, c, dir)
			pids(t, filepath.Join(hostDir, "agent.pids"), 1)
			if err := spoil(filepath.Join(hostDir, "machine.json")); err != nil {
				t.Fatalf("spoil: %v", err)
			}
			page, err := c.List(t.Context(), lifecycle.PageOf{})
			want := []lifecycle.Machine{{InstanceID: id, State: lifecycle.MachineRunning}}
			if diff := cmp.Diff(want, page.Items); err != nil || diff != "" {
				t.Errorf("list: %v (-want +got):\n%s", err, diff)
			}
			terminate(t, c, id)
			if left := marked(t, id); len(left) != 0 || state(t, c, id) != lifecycle.MachineGone {
				t.Errorf("the host is %s, processes %v are left", state(t, c, id), left)
			}
		})
	}
}

func TestEnvironmentAndConfiguration(t *testing.T) {
	t.Setenv("GITHUB_APP_KEY", "secret")
	dir := root(t)
	c := open(t, dir, `env >"$dir/env"; cp "$2" "$dir/config"; `+stays, nil)
	id, hostDir := launch(t, c, dir)
	pids(t, filepath.Join(hostDir, "agent.pids"), 1)
	env := read(t, filepath.Join(hostDir, "env"))
	if strings.Contains(env, "secret") {
		t.Error("the host was given what controld keeps secret")
	}
	for _, want := range []string{"PATH=" + os.Getenv("PATH"), "REMUDA_INSTANCE_ID=" + id} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("the environment lacks %s:\n%s", want, env)
		}
	}
	want := fmt.Sprintf("instance: %s\nstate: %s\n", id, hostDir)
	if diff := cmp.Diff(want, read(t, filepath.Join(hostDir, "config"))); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(data)
}

func TestLogIsBounded(t *testing.T) {
	dir := root(t)
	c := open(t, dir, starts+`head -c 9000000 /dev/zero; exit 1`, nil)
	_, hostDir := launch(t, c, dir)
	pids(t, filepath.Join(hostDir, "agent.pids"), 5)
	var total int64
	for _, name := range []string{"agentd.log", "agentd.log.1"} {
		info, err := os.Stat(filepath.Join(hostDir, name))
		if err != nil {
			t.Fatalf("stat log: %v", err)
		}
		total += info.Size()
	}
	if total > 20_000_000 {
		t.Errorf("the log takes %d bytes", total)
	}
}

// TestReadOnlyEndsNothing: who only looks leaves to others what is left of a
// host, and makes no directory.
func TestReadOnlyEndsNothing(t *testing.T) {
	dir := root(t)
	readOnly := func(o *process.Options) { o.ReadOnly = true }
	reader := open(t, dir, stays, readOnly)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Fatalf("%d directories were made: %v", len(entries), err)
	}
	c := open(t, dir, stays, nil)
	id, hostDir := launch(t, c, dir)
	agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	killHard(t, initPID(t, hostDir))
	eventually(t, "the host is ending", func() bool { return state(t, reader, id) == lifecycle.MachineEnding })
	if _, err := reader.List(t.Context(), lifecycle.PageOf{}); err != nil {
		t.Error(err)
	}
	if !alive(agent) {
		t.Error("a look ended an agentd")
	}
	if state(t, c, id) != lifecycle.MachineGone || alive(agent) {
		t.Error("who may end it did not")
	}
}

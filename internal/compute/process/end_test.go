package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/proc"
)

// TestTerminateKillsAll: whatever its processes did to get away.
func TestTerminateKillsAll(t *testing.T) {
	tests := map[string]string{
		// Between two programs a process has no environment to be known by.
		"always another program": `( AGAIN='exec sh -c "$AGAIN"' setsid sh -c 'echo $$ >"$1/left.pids"; exec sh -c "$AGAIN"' sh "$dir" & )`,

		"daemonised":           `( setsid sh -c 'echo $$ >"$1/left.pids"; exec sleep 1000' sh "$dir" & )`,
		"deaf to signals":      `( setsid sh -c 'trap "" TERM HUP INT; echo $$ >"$1/left.pids"; while :; do sleep 1000; done' sh "$dir" & )`,
		"without the variable": `env -u REMUDA_INSTANCE_ID sh -c 'echo $$ >"$1/left.pids"; exec sleep 1000' sh "$dir" &`,
		"stopped":              `( setsid sh -c 'echo $$ >"$1/left.pids"; kill -STOP $$' sh "$dir" & )`,
		"always another":       `( setsid sh -c 'echo $$ >"$1/left.pids"; exec "$0" -c "while :; do sleep 0.01 & wait; done"' sh "$dir" & )`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			dir := root(t)
			c := open(t, dir, script+"\n"+stays, nil)
			id, hostDir := launch(t, c, dir)
			left := pids(t, filepath.Join(hostDir, "left.pids"), 1)[0]
			agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
			all := map[string]proc.Stat{} // with their starts: on a busy machine another process soon has the number of one that is gone
			for what, pid := range map[string]int{"leftover": left, "agentd": agent, "init": initPID(t, hostDir)} {
				s, err := proc.Default.Stat(pid)
				if err != nil {
					t.Fatal(err)
				}
				all[what] = s
			}
			terminate(t, c, id)
			for what, was := range all {
				if is, err := proc.Default.Stat(was.PID); err == nil && is.ID == was.ID && !is.Dead() {
					t.Errorf("%s lives: %+v", what, is)
				}
			}
			if more := marked(t, id); len(more) != 0 {
				t.Errorf("processes %v are left", more)
			}
			if got := state(t, c, id); got != lifecycle.MachineGone {
				t.Errorf("the host is %s", got)
			}
		})
	}
}

// TestTerminateWithoutAMark: where nothing can be written, as on a full or
// read-only disk, a host is killed for all that, although its init would start
// agentd again and again.
func TestTerminateWithoutAMark(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, func(o *process.Options) { o.RestartDelay = time.Millisecond })
	id, hostDir := launch(t, c, dir)
	pids(t, filepath.Join(hostDir, "agent.pids"), 1)
	mark := filepath.Join(hostDir, "ending")
	if err := os.Symlink("/nowhere/at/all", mark); err != nil {
		t.Fatalf("link: %v", err)
	}
	err := c.Terminate(t.Context(), []string{id})
	if !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), mark) {
		t.Errorf("terminate: got %v, want ErrUnavailable that names %s", err, mark)
	}
	if left := marked(t, id); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatalf("mend: %v", err)
	}
	if got := state(t, c, id); got != lifecycle.MachineGone {
		t.Errorf("once it can be marked the host is %s", got)
	}
}

func TestTerminateLeavesOthersAlone(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	machines, err := c.Launch(t.Context(), order(1, 2))
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	agents := make([]int, 2)
	for i, m := range machines {
		agents[i] = pids(t, filepath.Join(dir, "hosts", m.InstanceID, "agent.pids"), 1)[0]
	}
	terminate(t, c, machines[0].InstanceID)
	if alive(agents[0]) || !alive(agents[1]) {
		t.Errorf("agentd of the terminated host lives: %v, of the other: %v", alive(agents[0]), alive(agents[1]))
	}
}

// TestSameTokenInAnotherRoot: two clouds on one machine are two clouds.
func TestSameTokenInAnotherRoot(t *testing.T) {
	first, second := root(t), root(t)
	c := open(t, first, stays, nil)
	id, _ := launch(t, c, first)
	other, otherDir := launch(t, open(t, second, stays, nil), second)
	agent := pids(t, filepath.Join(otherDir, "agent.pids"), 1)[0]
	terminate(t, c, id)
	if id == other || !alive(agent) {
		t.Errorf("hosts %s and %s of two clouds: the other one's agentd lives: %v", id, other, alive(agent))
	}
}

// TestReusedPID: init.pid names an innocent process, which came to init's pid
// after init was dead.
func TestReusedPID(t *testing.T) {
	tests := map[string]struct{ start, boot func(string) string }{
		"another start time":     {func(s string) string { return s + "0" }, same},
		"another boot of kernel": {same, func(string) string { return "00000000-0000-0000-0000-000000000000" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := root(t)
			c := open(t, dir, stays, nil)
			id, hostDir := launch(t, c, dir)
			innocent := exec.Command("sleep", "1000")
			innocent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := innocent.Start(); err != nil {
				t.Fatalf("start: %v", err)
			}
			t.Cleanup(func() { innocent.Process.Kill(); innocent.Wait() })

			agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
			killHard(t, initPID(t, hostDir))
			killHard(t, agent)
			line := strings.Fields(read(t, filepath.Join(hostDir, "init.pid")))
			pid := innocent.Process.Pid
			forged := fmt.Sprintf("%d %s %s\n", pid, test.start(startTime(t, pid)), test.boot(line[2]))
			if err := os.WriteFile(filepath.Join(hostDir, "init.pid"), []byte(forged), 0o600); err != nil {
				t.Fatalf("write: %v", err)
			}
			if got := state(t, c, id); got != lifecycle.MachineGone {
				t.Errorf("the host is %s", got)
			}
			terminate(t, c, id)
			if !alive(pid) {
				t.Error("an innocent process was killed")
			}
		})
	}
}

func same(s string) string { return s }

// startTime is field 22 of stat; the command of the process has no blanks.
func startTime(t *testing.T, pid int) string {
	t.Helper()
	fields := strings.Fields(read(t, "/proc/"+strconv.Itoa(pid)+"/stat"))
	return fields[21]
}

func TestTerminateRemovesNoMoreThanTheHost(t *testing.T) {
	dir, outside := root(t), t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatalf("write: %v", err)
	}
	c := open(t, dir, stays, nil)
	id, hostDir := launch(t, c, dir)
	pids(t, filepath.Join(hostDir, "agent.pids"), 1)
	readOnly := filepath.Join(hostDir, "mod", "cache")
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(hostDir, "link")),
		os.Symlink(precious, filepath.Join(hostDir, "file")),
		os.MkdirAll(readOnly, 0o700),
		os.WriteFile(filepath.Join(readOnly, "go.mod"), nil, 0o400),
		os.Chmod(readOnly, 0o500),
	} {
		if err != nil {
			t.Fatalf("prepare: %v", err)
		}
	}
	terminate(t, c, id)
	if got := read(t, precious); got != "kept" {
		t.Errorf("the file behind a link holds %q", got)
	}
	entries, err := os.ReadDir(hostDir)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"ended", "ending", "machine.json"}, left); diff != "" {
		t.Errorf("what is left of the host (-want +got):\n%s", diff)
	}
}

func TestTerminateOfALinkedDirectory(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	_, hostDir := launch(t, c, dir)
	agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	const link = "i-0123456789abcdef0"
	if err := os.Symlink(hostDir, filepath.Join(dir, "hosts", link)); err != nil {
		t.Fatalf("link: %v", err)
	}
	terminate(t, c, link)
	if _, err := os.Stat(filepath.Join(hostDir, "agentd.yaml")); err != nil || !alive(agent) {
		t.Errorf("the host behind the link: agentd lives: %v, its files: %v", alive(agent), err)
	}
}

func TestEndedHostsAreForgotten(t *testing.T) {
	dir := root(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := open(t, dir, stays, func(o *process.Options) { o.Now = func() time.Time { return now } })
	id, hostDir := launch(t, c, dir)
	terminate(t, c, id)
	count := func() (hosts, orders int) {
		for name, n := range map[string]*int{"hosts": &hosts, "orders": &orders} {
			entries, err := os.ReadDir(filepath.Join(dir, name))
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			*n = len(entries)
		}
		return hosts, orders
	}
	now = now.Add(24 * time.Hour)
	if _, err := c.Launch(t.Context(), order(2, 1)); err != nil {
		t.Fatalf("launch: %v", err)
	}
	if hosts, orders := count(); hosts != 2 || orders != 2 {
		t.Errorf("after 24 h: %d hosts and %d orders are known, want 2 of each", hosts, orders)
	}
	now = now.Add(time.Second)
	if _, err := c.Launch(t.Context(), order(3, 1)); err != nil {
		t.Fatalf("launch: %v", err)
	}
	if hosts, orders := count(); hosts != 2 || orders != 2 {
		t.Errorf("after more: %d hosts and %d orders are known, want 2 of each", hosts, orders)
	}
	if _, err := os.Stat(hostDir); err == nil {
		t.Error("the ended host is still known")
	}
}

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/computetest"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The stand-ins for agentd note their pids; one stays, others go on.
const (
	starts = `echo $$ >>"$dir/agent.pids"; `
	stays  = starts + `exec sleep 1000`
)

// patience bounds every wait for a real process; none takes a tenth of it.
const patience = 8 * time.Minute

// root is a directory for one cloud, which is ended with the test.
func root(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := open(t, dir, stays, nil).EndAll(ctx); err != nil {
			t.Errorf("end all: %v", err)
		}
	})
	return dir
}

// open opens the cloud at dir, whose agentd is a script.
func open(t *testing.T, dir, script string, change func(*process.Options)) *process.Compute {
	t.Helper()
	agent := filepath.Join(t.TempDir(), "agentd")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\ndir=$(dirname \"$2\")\n"+script+"\n"), 0o700); err != nil {
		t.Fatalf("write agent: %v", err)
	}
	o := process.Options{
		Root: dir, AgentPath: agent, RestartDelay: 20 * time.Millisecond,
		AgentConfig: func(m lifecycle.Machine, hostDir string) ([]byte, error) {
			return fmt.Appendf(nil, "instance: %s\nstate: %s\n", m.InstanceID, hostDir), nil
		},
		Limits: placement.Limits{Arch: catalogue.ArchX86},
	}
	if change != nil {
		change(&o)
	}
	c, err := process.New(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return c
}

func order(number, count int) lifecycle.LaunchOrder {
	return lifecycle.LaunchOrder{
		Token: fmt.Sprintf("q/%d", number), RequestID: "q", Number: number, Count: count, Pool: "default",
		Repository: "acme/shop", RunID: "7", ResourceClass: "large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"c6i.*"},
	}
}

// launch launches one host and returns its id and directory.
func launch(t *testing.T, c *process.Compute, dir string) (id, hostDir string) {
	t.Helper()
	machines, err := c.Launch(t.Context(), order(1, 1))
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	return machines[0].InstanceID, filepath.Join(dir, "hosts", machines[0].InstanceID)
}

func terminate(t *testing.T, c *process.Compute, ids ...string) {
	t.Helper()
	if err := c.Terminate(t.Context(), ids); err != nil {
		t.Fatalf("terminate: %v", err)
	}
}

func state(t *testing.T, c *process.Compute, id string) lifecycle.MachineState {
	t.Helper()
	machines, err := c.Describe(t.Context(), []string{id})
	if err != nil {
		t.Fatalf("describe: %v", err)
	}
	return machines[0].State
}

// eventually waits for real processes to do what they were started for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// pids waits until the host's file has n lines of pids and returns them.
func pids(t *testing.T, file string, n int) []int {
	t.Helper()
	var found []int
	eventually(t, fmt.Sprintf("%d pids in %s", n, file), func() bool {
		data, _ := os.ReadFile(file)
		found = nil
		for line := range strings.Lines(string(data)) {
			if pid, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil && strings.HasSuffix(line, "\n") {
				found = append(found, pid)
			}
		}
		return len(found) >= n
	})
	return found
}

// stat is the state letter, parent and session of a process; false when there is none.
func stat(pid int) (state string, parent, session int, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(data), ") ")
	if err != nil || !found {
		return "", 0, 0, false
	}
	var group int
	_, err = fmt.Sscan(rest, &state, &parent, &group, &session)
	return state, parent, session, err == nil
}

func alive(pid int) bool {
	state, _, _, ok := stat(pid)
	return ok && state != "Z" && state != "X"
}

// marked are the living processes whose environment has the host's mark.
func marked(t *testing.T, id string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !alive(pid) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if slices.Contains(strings.Split(string(env), "\x00"), process.InstanceIDVariable+"="+id) {
			found = append(found, pid)
		}
	}
	return found
}

func killHard(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

func TestConformance(t *testing.T) {
	computetest.Run(t, func(t *testing.T, capacity computetest.Capacity) computetest.Cloud {
		dir := root(t)
		limit := func(o *process.Options) {
			o.Limits = placement.Limits{Capacity: capacity, Zones: []string{"local-a", "local-b"}}
		}
		return computetest.Cloud{
			First: open(t, dir, stays, limit), Second: open(t, dir, stays, limit), Boot: func(string) {},
			Tag: func(id, value string) {
				if err := os.WriteFile(filepath.Join(dir, "hosts", id, "bypass-removal"), []byte(value+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

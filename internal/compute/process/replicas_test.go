package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestHostsAreFoundAgain: nothing but the directory passes from one replica to
// the next.
func TestHostsAreFoundAgain(t *testing.T) {
	dir := root(t)
	launched, err := open(t, dir, stays, nil).Launch(t.Context(), order(1, 2))
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link") // and the root may be called otherwise
	if err := os.Symlink(dir, link); err != nil {
		t.Fatalf("link: %v", err)
	}
	c := open(t, link, stays, nil)
	found, err := c.Launched(t.Context(), order(1, 0))
	if err != nil || len(found) != 2 {
		t.Fatalf("launched: got %+v, %v", found, err)
	}
	for _, m := range launched {
		agent := pids(t, filepath.Join(dir, "hosts", m.InstanceID, "agent.pids"), 1)[0]
		terminate(t, c, m.InstanceID)
		if alive(agent) {
			t.Error("agentd of a host that was found again is not ended")
		}
	}
}

// TestRace: two replicas that launch and repeat one order start one init and
// one agentd for each host.
func TestRace(t *testing.T) {
	dir := root(t)
	const hosts, callers = 3, 8
	replicas := []*process.Compute{open(t, dir, stays, nil), open(t, dir, stays, nil)}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, err := replicas[i%2].Launch(t.Context(), order(1, hosts)); err != nil {
				t.Errorf("launch: %v", err)
			}
		})
	}
	wg.Wait()
	machines, err := replicas[0].Launch(t.Context(), order(1, hosts))
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	for _, m := range machines {
		hostDir := filepath.Join(dir, "hosts", m.InstanceID)
		agents := pids(t, filepath.Join(hostDir, "agent.pids"), 1)
		leaders := 0
		for _, pid := range marked(t, m.InstanceID) {
			if _, _, session, ok := stat(pid); ok && session == pid {
				leaders++
			}
		}
		if leaders != 1 || len(agents) != 1 {
			t.Errorf("host %s has %d inits and %d agents", m.InstanceID, leaders, len(agents))
		}
	}
}

// TestRaceForCapacity: different orders at once are not given the same room.
func TestRaceForCapacity(t *testing.T) {
	dir := root(t)
	limit := func(o *process.Options) { o.Limits = placement.Limits{Capacity: map[string]int{"*": 4}} }
	replicas := []*process.Compute{open(t, dir, stays, limit), open(t, dir, stays, limit)}
	got := make([]int, 6)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			o := order(i+1, 2)
			o.InstanceTypes = nil
			machines, err := replicas[i%2].Launch(t.Context(), o)
			var short *lifecycle.ShortageError
			if err != nil && !errors.As(err, &short) {
				t.Errorf("launch: %v", err)
			}
			got[i] = len(machines)
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != 4 {
		t.Errorf("orders were given %v hosts, want 4 in all", got)
	}
}

// TestCrashInLaunch: a launch that was cut short is finished by the next call
// of the same order, with the same machines.
func TestCrashInLaunch(t *testing.T) {
	tests := map[string][]string{
		"after the plan":              {"orders"},
		"after the first directory":   {"orders", "hosts/0/machine.json", "hosts/0/agentd.yaml", "hosts/0/init", "hosts/0/agentd.log"},
		"while a directory was made":  {"orders", "draft/init"},
		"when the lock was left over": {"orders", "lock", "hosts/0/machine.json", "hosts/0/agentd.yaml", "hosts/0/init", "hosts/0/agentd.log", "hosts/0/lock"},
	}
	for name, files := range tests {
		t.Run(name, func(t *testing.T) {
			whole, dir := root(t), root(t)
			launched, err := open(t, whole, stays, nil).Launch(t.Context(), order(1, 2))
			if err != nil {
				t.Fatalf("launch: %v", err)
			}
			for _, file := range files {
				name := strings.Replace(file, "/0/", "/"+launched[0].InstanceID+"/", 1)
				copyTo(t, whole, dir, name)
			}
			c := open(t, dir, stays, nil)
			for i, m := range launched {
				want := lifecycle.MachineGone
				if i == 0 && len(files) > 2 {
					want = lifecycle.MachinePending
				}
				if got := state(t, c, m.InstanceID); got != want {
					t.Errorf("before the call is repeated host %d is %s, want %s", i, got, want)
				}
			}
			again, err := c.Launch(t.Context(), order(1, 2))
			if err != nil {
				t.Fatalf("launch again: %v", err)
			}
			for i, m := range again {
				if m.InstanceID != launched[i].InstanceID {
					t.Errorf("host %d is %s, want %s", i, m.InstanceID, launched[i].InstanceID)
				}
				pids(t, filepath.Join(dir, "hosts", m.InstanceID, "agent.pids"), 1)
			}
		})
	}
}

// TestCrashInLaunchIsFoundOut: who takes over asks for the machines of the
// launch, finds as many as were ordered, and does not make the order again.
func TestCrashInLaunchIsFoundOut(t *testing.T) {
	whole, dir := root(t), root(t)
	launched, err := open(t, whole, stays, nil).Launch(t.Context(), order(1, 2))
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	copyTo(t, whole, dir, "orders")
	for _, m := range launched {
		for _, name := range []string{"machine.json", "agentd.yaml", "init", "agentd.log"} {
			copyTo(t, whole, dir, filepath.Join("hosts", m.InstanceID, name))
		}
	}
	found, err := open(t, dir, stays, nil).Launched(t.Context(), order(1, 0))
	if err != nil || len(found) != len(launched) {
		t.Fatalf("launched: got %+v, %v", found, err)
	}
	for _, m := range found {
		pids(t, filepath.Join(dir, "hosts", m.InstanceID, "agent.pids"), 1)
	}
}

// copyTo copies a file, or the files of a directory, from one root to another.
// What the first root does not have is made up.
func copyTo(t *testing.T, from, to, name string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Join(from, name)); err == nil {
		for _, e := range entries {
			copyTo(t, from, to, filepath.Join(name, e.Name()))
		}
		return
	}
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		data = nil
	}
	target := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		t.Fatalf("copy: %v", err)
	}
	if err := os.WriteFile(target, data, 0o600); err != nil {
		t.Fatalf("copy: %v", err)
	}
}

// TestCrashInTerminate: a host that was marked and then left is ended by the
// next call that looks at it, and no launch starts it in between.
func TestCrashInTerminate(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	id, hostDir := launch(t, c, dir)
	agent := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	if err := os.WriteFile(filepath.Join(hostDir, "ending"), nil, 0o600); err != nil {
		t.Fatalf("mark: %v", err)
	}
	machines, err := c.Launch(t.Context(), order(1, 1))
	if err != nil || machines[0].State != lifecycle.MachineEnding {
		t.Errorf("launch again: got %+v, %v", machines, err)
	}
	page, err := open(t, dir, stays, nil).List(t.Context(), lifecycle.PageOf{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("list: got %+v, %v", page, err)
	}
	if got := state(t, c, id); got != lifecycle.MachineGone || alive(agent) {
		t.Errorf("the host is %s, its agentd lives: %v", got, alive(agent))
	}
}

func TestBrokenRoot(t *testing.T) {
	dir := root(t)
	c := open(t, dir, stays, nil)
	for _, name := range []string{"orders", "hosts"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatalf("spoil: %v", err)
		}
		_, err := c.Launch(t.Context(), order(1, 1))
		if !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("without %s: got %v, want ErrUnavailable that names it", name, err)
		}
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatalf("mend: %v", err)
		}
	}
	launch(t, c, dir)
}

func TestBadOptions(t *testing.T) {
	good := process.Options{
		Root: t.TempDir(), AgentPath: "/bin/sh",
		AgentConfig: func(lifecycle.Machine, string) ([]byte, error) { return nil, nil },
	}
	tests := map[string]struct {
		spoil func(*process.Options)
		says  []string
	}{
		"root is a file":  {func(o *process.Options) { o.Root = "/dev/null" }, []string{"/dev/null"}},
		"root is no more": {func(o *process.Options) { o.Root = "/proc/self/remuda" }, []string{"/proc/self/remuda"}},
		"no agent":        {func(o *process.Options) { o.AgentPath = "/nowhere/agentd" }, []string{"agent path", "/nowhere/agentd"}},
		"several at once": {func(o *process.Options) {
			o.Root, o.AgentConfig, o.BootDelay, o.RestartDelay = "", nil, -1, -time.Second
			o.Capacity = map[string]int{"C*": 1}
		}, []string{"root", "agent config", "boot delay", "restart delay", `"C*"`}},
	}
	if _, err := process.New(good); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			test.spoil(&o)
			_, err := process.New(o)
			for _, says := range test.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got error %v, want one that says %s", err, says)
				}
			}
		})
	}
}

func TestFailingConfigurationLaunchesNothing(t *testing.T) {
	dir := root(t)
	broken := errors.New("no template")
	c := open(t, dir, stays, func(o *process.Options) {
		o.AgentConfig = func(lifecycle.Machine, string) ([]byte, error) { return nil, broken }
	})
	if _, err := c.Launch(t.Context(), order(1, 1)); !errors.Is(err, broken) {
		t.Errorf("launch: got %v, want %v", err, broken)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "hosts"))
	if diff := cmp.Diff(0, len(entries)); err != nil || diff != "" {
		t.Errorf("hosts (-want +got): %v\n%s", err, diff)
	}
}

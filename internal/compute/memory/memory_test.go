package memory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/computetest"
	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func open(t *testing.T, o memory.Options) *memory.Compute {
	t.Helper()
	c, err := memory.New(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return c
}

func TestConformance(t *testing.T) {
	computetest.Run(t, func(t *testing.T, capacity computetest.Capacity) computetest.Cloud {
		c := open(t, memory.Options{Limits: placement.Limits{Capacity: capacity}})
		return computetest.Cloud{First: c, Second: c, Boot: func(id string) { c.Boot(id) },
			Tag: func(id, value string) { c.SetBypass(id, value == "true") }}
	})
}

var order = lifecycle.LaunchOrder{
	Token: "t", RequestID: "q", Number: 1, Count: 2, CPU: 2, MemoryMiB: 4096,
	UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"c6i.large"},
}

var x86 = placement.Limits{Arch: catalogue.ArchX86}

func clock() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func launch(t *testing.T, c *memory.Compute) []string {
	t.Helper()
	machines, err := c.Launch(t.Context(), order)
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	return []string{machines[0].InstanceID, machines[1].InstanceID}
}

func stateOf(t *testing.T, c *memory.Compute, id string) lifecycle.MachineState {
	t.Helper()
	machines, err := c.Describe(t.Context(), []string{id})
	if err != nil {
		t.Fatalf("describe: %v", err)
	}
	return machines[0].State
}

func TestSteps(t *testing.T) {
	c := open(t, memory.Options{Limits: x86, Now: clock, SlowEnd: true})
	ids := launch(t, c)
	step := func(what string, did, want bool, state lifecycle.MachineState) {
		t.Helper()
		if did != want {
			t.Errorf("%s: did it: %v, want %v", what, did, want)
		}
		if got := stateOf(t, c, ids[0]); got != state {
			t.Errorf("%s: the machine is %s, want %s", what, got, state)
		}
	}
	step("boot", c.Boot(ids[0]), true, lifecycle.MachineRunning)
	step("boot again", c.Boot(ids[0]), false, lifecycle.MachineRunning)
	step("impair", c.Impair(ids[0], true), true, lifecycle.MachineRunning)
	if err := c.Terminate(t.Context(), ids[:1]); err != nil {
		t.Fatalf("terminate: %v", err)
	}
	step("terminate", true, true, lifecycle.MachineEnding)
	step("kill", c.Kill(ids[0]), true, lifecycle.MachineGone)
	step("kill again", c.Kill(ids[0]), false, lifecycle.MachineGone)
	step("boot a gone one", c.Boot(ids[0]), false, lifecycle.MachineGone)
	step("boot an unknown one", c.Boot("i-1"), false, lifecycle.MachineGone)
	if got := stateOf(t, c, ids[1]); got != lifecycle.MachinePending {
		t.Errorf("the other machine is %s", got)
	}
}

func TestClone(t *testing.T) {
	c := open(t, memory.Options{Limits: x86, Now: clock})
	ids := launch(t, c)
	clone := c.Clone()
	clone.Kill(ids[0])
	c.Boot(ids[1])
	c.SetCapacity("*", 0)
	if got := stateOf(t, c, ids[0]); got != lifecycle.MachinePending {
		t.Errorf("killed in the clone, the machine is %s", got)
	}
	if got := stateOf(t, clone, ids[1]); got != lifecycle.MachinePending {
		t.Errorf("booted beside the clone, its machine is %s", got)
	}
	other := order
	other.Token, other.Number = "t2", 2
	if machines, err := clone.Launch(t.Context(), other); err != nil || len(machines) != 2 {
		t.Errorf("launch in the clone: %d machines, %v", len(machines), err)
	}
	if machines, err := c.Launch(t.Context(), other); err == nil {
		t.Errorf("launch without capacity: %d machines and no error", len(machines))
	}
}

// TestDeterministic: two clouds that get the same calls do the same.
func TestDeterministic(t *testing.T) {
	var clouds [2]lifecycle.Page[lifecycle.Machine]
	for i := range clouds {
		c := open(t, memory.Options{Limits: x86, Now: clock})
		launch(t, c)
		page, err := c.List(t.Context(), lifecycle.PageOf{})
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		clouds[i] = page
	}
	if diff := cmp.Diff(clouds[0], clouds[1]); diff != "" {
		t.Errorf("two clouds (-first +second):\n%s", diff)
	}
}

func TestBadOptions(t *testing.T) {
	if _, err := memory.New(memory.Options{Limits: placement.Limits{Capacity: map[string]int{"C*": 1}}}); err == nil {
		t.Error("a malformed capacity: got no error")
	}
}

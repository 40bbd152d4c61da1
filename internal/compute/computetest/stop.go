package computetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// testStop: a machine that is stopped is still there, keeps its tags, and runs again once it is started.
func testStop(t *testing.T, c Cloud) {
	launched := launch(t, c.First, order("q", 1, 2))
	id := launched[0].InstanceID
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	for _, client := range []Compute{c.First, c.Second, c.First} { // a repeat is no error
		if err := client.Stop(t.Context(), id, false); err != nil {
			t.Fatalf("stop %s: %v", id, err)
		}
	}
	awaitState(t, c.Second, id, lifecycle.MachineStopped)
	if got := list(t, c.First, 0); len(got) != 2 {
		t.Errorf("%d machines are listed, want 2", len(got))
	}
	for _, client := range []Compute{c.Second, c.First, c.Second} {
		if err := client.Start(t.Context(), id); err != nil && !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Fatalf("start %s: %v", id, err)
		}
	}
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	c.Boot(launched[1].InstanceID)
	if diff := cmp.Diff(launched, describe(t, c.Second, idsOf(launched)...), ignoreState, ignoreLaunchTime); diff != "" {
		t.Errorf("after the stop and the start (-launched +described):\n%s", diff)
	}
}

// testStoppedEnds: a stopped machine can be ended, and does not come back. One that was not launched to be hibernated is stopped plainly.
func testStoppedEnds(t *testing.T, c Cloud) {
	id := launch(t, c.First, order("q", 1, 1))[0].InstanceID
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	if err := c.First.Stop(t.Context(), id, true); err != nil {
		t.Fatalf("stop %s: %v", id, err)
	}
	awaitState(t, c.First, id, lifecycle.MachineStopped)
	terminate(t, c.Second, id)
	awaitState(t, c.First, id, lifecycle.MachineGone)
	if err := c.First.Stop(t.Context(), id, false); err != nil {
		t.Errorf("stop a machine that is gone: %v", err)
	}
	if err := c.First.Start(t.Context(), id); err == nil {
		t.Error("a machine that is gone can be started")
	}
	if got := describe(t, c.First, id)[0].State; got != lifecycle.MachineGone {
		t.Errorf("a machine that is gone is %s again", got)
	}
}

// testStopUnknown: nothing happens to a machine that nothing is known of.
func testStopUnknown(t *testing.T, c Cloud) {
	const id = "i-00000000000000bad"
	if err := c.First.Stop(t.Context(), id, false); err != nil {
		t.Errorf("stop an unknown machine: %v", err)
	}
	if err := c.First.Start(t.Context(), id); err == nil {
		t.Error("an unknown machine can be started")
	}
}

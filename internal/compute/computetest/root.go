package computetest

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// testReplaceRoot: a machine gets a new root volume once for each token, whichever replica asks, and runs on with its id and tags.
func testReplaceRoot(t *testing.T, c Cloud) {
	launched := launch(t, c.First, order("q", 1, 2))
	id := launched[0].InstanceID
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	var task lifecycle.RootTask
	for i, client := range []Compute{c.First, c.Second, c.First} {
		got, err := client.ReplaceRoot(t.Context(), id, "token")
		if err != nil {
			t.Fatalf("replace the root volume of %s: %v", id, err)
		}
		if i > 0 && got.ID != task.ID {
			t.Errorf("the same token gave %+v and %+v", task, got)
		}
		task = got
	}
	for began := time.Now(); task.State == lifecycle.RootReplacing; time.Sleep(5 * time.Millisecond) {
		got, err := c.Second.RootTasks(t.Context(), []string{id, launched[1].InstanceID})
		if err != nil || len(got) != 1 || got[0].ID != task.ID || time.Since(began) > bootTimeout {
			t.Fatalf("%+v, %v; want the one task", got, err)
		}
		task = got[0]
	}
	if task.State != lifecycle.RootReplaced {
		t.Errorf("the task is %+v", task)
	}
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	if got := list(t, c.First, 0); len(got) != 2 {
		t.Errorf("%d machines are listed, want 2", len(got))
	}
}

// testReplaceRootRefused: a machine that is gone, or that nothing is known of, gets none.
func testReplaceRootRefused(t *testing.T, c Cloud) {
	id := launch(t, c.First, order("q", 1, 1))[0].InstanceID
	c.Boot(id)
	awaitState(t, c.First, id, lifecycle.MachineRunning)
	terminate(t, c.First, id)
	awaitState(t, c.First, id, lifecycle.MachineGone)
	for _, id := range []string{id, "i-00000000000000bad"} {
		if _, err := c.Second.ReplaceRoot(t.Context(), id, "token"); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("replace the root volume of %s: %v, want ErrRefused", id, err)
		}
		if got, err := c.Second.RootTasks(t.Context(), []string{id}); err != nil || len(got) != 0 {
			t.Errorf("tasks of %s: %v, %v", id, got, err)
		}
	}
}

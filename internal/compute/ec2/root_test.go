package ec2_test

import (
	"errors"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestARootVolumeIsReplaced once for each token, and the tasks of an instance are found by its id, old ones too.
func TestARootVolumeIsReplaced(t *testing.T) {
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines, err := c.Launch(t.Context(), order(t, c, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	id := machines[0].InstanceID
	w.RootTakes(1)
	var replaced []string
	w.OnRootReplaced(func(instance string) { replaced = append(replaced, instance) })
	replace := func(token string) lifecycle.RootTask {
		t.Helper()
		task, err := c.ReplaceRoot(t.Context(), id, token)
		if err != nil || task.ID == "" || task.InstanceID != id {
			t.Fatalf("replace: %+v, %v", task, err)
		}
		return task
	}
	first := replace("one")
	for _, want := range []lifecycle.RootTaskState{lifecycle.RootReplacing, lifecycle.RootReplacing, lifecycle.RootReplaced} {
		got, err := c.RootTasks(t.Context(), []string{id, machines[1].InstanceID})
		if err != nil || len(got) != 1 || got[0].ID != first.ID || got[0].State != want {
			t.Fatalf("%+v, %v; want one task that is %s", got, err, want)
		}
	}
	if again := replace("one"); again.ID != first.ID || again.State != lifecycle.RootReplaced {
		t.Errorf("the same token gave %+v", again)
	}
	if second := replace("two"); second.ID == first.ID {
		t.Error("another token gave the same task")
	}
	if got, err := c.RootTasks(t.Context(), []string{id}); err != nil || len(got) != 2 {
		t.Errorf("%+v, %v; want two tasks", got, err)
	}
	if len(replaced) != 1 || replaced[0] != id {
		t.Errorf("new root volumes have %v", replaced)
	}
}

// TestAReplacementThatFails: it is refused for an instance that does not run, and for one that has another under way; and one that EC2 cannot finish has failed,
// whatever the instance has then.
func TestAReplacementThatFails(t *testing.T) {
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines, err := c.Launch(t.Context(), order(t, c, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"failed", "failed-detached", "failing", "failing-detached"} {
		w.RootEndsAs(state)
		id := machines[0].InstanceID
		if _, err := c.ReplaceRoot(t.Context(), id, state); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReplaceRoot(t.Context(), id, state+" again"); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("a second one at once: %v, want ErrRefused", err)
		}
		var last lifecycle.RootTask
		for range 2 {
			tasks, err := c.RootTasks(t.Context(), []string{id})
			if err != nil {
				t.Fatal(err)
			}
			last = tasks[len(tasks)-1]
		}
		if last.State != lifecycle.RootFailed || last.Said != state {
			t.Errorf("%+v, want one that failed as %s", last, state)
		}
	}
	gone := machines[1].InstanceID
	if err := c.Terminate(t.Context(), []string{gone}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{gone, "i-00000000000000bad", "none"} {
		if _, err := c.ReplaceRoot(t.Context(), id, "gone"); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("replace the root volume of %s: %v, want ErrRefused", id, err)
		}
	}
}

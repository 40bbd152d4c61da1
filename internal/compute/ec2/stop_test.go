package ec2_test

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestNoCapacityToStart is a shortage, and the machine stays stopped.
func TestNoCapacityToStart(t *testing.T) {
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines, err := c.Launch(t.Context(), order(t, c, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	id := machines[0].InstanceID
	state := func() lifecycle.MachineState {
		got, err := c.Describe(t.Context(), []string{id})
		if err != nil {
			t.Fatal(err)
		}
		return got[0].State
	}
	if err := c.Stop(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); state() != lifecycle.MachineStopped; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("the machine is %s", state())
		}
	}
	w.StartShort(true)
	var short *lifecycle.ShortageError
	if err := c.Start(t.Context(), id); !errors.As(err, &short) {
		t.Errorf("start: %v, want a shortage", err)
	}
	if got := state(); got != lifecycle.MachineStopped {
		t.Errorf("the machine is %s", got)
	}
	w.StartShort(false)
	if err := c.Start(t.Context(), id); err != nil {
		t.Error(err)
	}
}

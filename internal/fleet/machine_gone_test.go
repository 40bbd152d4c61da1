package fleet_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// machineEnds are the ends of machines, as an observer has them.
type machineEnds struct {
	silent
	mu  sync.Mutex
	why []string
}

func (*machineEnds) RunnersEnd(map[string]time.Time) {}

func (e *machineEnds) MachineGone(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.why = append(e.why, why)
}

// sayingWhy is a cloud that says why its machines are gone.
type sayingWhy struct{ fleet.Compute }

func (c sayingWhy) Describe(ctx context.Context, ids []string) ([]lifecycle.Machine, error) {
	machines, err := c.Compute.Describe(ctx, ids)
	for i := range machines {
		if machines[i].State == lifecycle.MachineGone {
			machines[i].EndReason = "Client.InternalError: Client error on launch"
		}
	}
	return machines, err
}

// TestTheEndOfAMachineIsCountedOnce: however often its host is looked at. A host that the fleet itself ends is not counted.
func TestTheEndOfAMachineIsCountedOnce(t *testing.T) {
	seen := &machineEnds{}
	inBubbleOf(t, func(o *fleet.Options) { o.Observer, o.Compute = seen, sayingWhy{o.Compute} }, func(ctx context.Context, t *testing.T, w *world) {
		go w.fleet.Sweep(ctx)
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		w.set(func() { w.deaf[hosts[0].HostKey] = true })
		w.compute.Kill(hosts[0].InstanceID)
		if _, err := w.fleet.Terminate(ctx, hosts[1].InstanceID, "enough", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if diff := cmp.Diff([]string{"Client.InternalError: Client error on launch"}, seen.why); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

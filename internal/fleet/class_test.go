package fleet_test

import (
	"context"
	"testing"

	"github.com/remuda-ci/remuda/internal/fleet"
)

// A class has grown since a host of it was pooled: the host is not given to a request of the class.
func TestAHostSmallerThanItsClassIsNotGiven(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			o.Classes["large"] = fleet.Class{CPU: 8, MemoryMiB: 16384}
		})
		h := w.mustProvision(ctx, demand("2", "b", 1))[0]
		if h.CPU < 8 || h.MemoryMiB < 16384 {
			t.Errorf("asked for a host of 8 vCPU and 16 GiB, got %d vCPU and %d MiB (%s)", h.CPU, h.MemoryMiB, h.InstanceType)
		}
	})
}

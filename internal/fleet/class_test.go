package fleet_test

import (
	"context"
	"testing"

	"github.com/remuda-ci/remuda/internal/fleet"
)

// A class has grown since a host of it was pooled: the host is not given to a request of the class.
func TestAHostSmallerThanItsClassIsNotGiven(t *testing.T) {
	for name, grown := range map[string]fleet.Class{
		"more of both": {CPU: 8, MemoryMiB: 16384}, "more vCPU": {CPU: 4, MemoryMiB: 4096}, "more memory": {CPU: 2, MemoryMiB: 8192},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				first := w.mustProvision(ctx, demand("1", "a", 1))[0]
				if first.CPU >= grown.CPU && first.MemoryMiB >= grown.MemoryMiB {
					t.Fatalf("the first host has %d vCPU and %d MiB already", first.CPU, first.MemoryMiB)
				}
				w.release(ctx, "1", true)
				w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Classes["large"] = grown })
				h := w.mustProvision(ctx, demand("2", "b", 1))[0]
				if h.CPU < grown.CPU || h.MemoryMiB < grown.MemoryMiB {
					t.Errorf("asked for a host of %d vCPU and %d MiB, got %d vCPU and %d MiB (%s)", grown.CPU, grown.MemoryMiB, h.CPU, h.MemoryMiB, h.InstanceType)
				}
			})
		})
	}
}

// The instance types of a pool were changed since a host was pooled: the host is given to a request if its type is still one of them.
func TestAHostOfATypeThatItsPoolHasNoMoreIsNotGiven(t *testing.T) {
	for name, pooled := range map[string]bool{"it has the type": true, "it has another type": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				first := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.release(ctx, "1", true)
				w.fleet = w.newFleet("b", func(o *fleet.Options) {
					p := o.Pools["default"]
					if p.InstanceTypes = []string{"r*", "m*"}; pooled {
						p.InstanceTypes = []string{"r*", first.InstanceType}
					}
					o.Pools["default"] = p
				})
				h := w.mustProvision(ctx, demand("2", "b", 1))[0]
				if given := h.InstanceID == first.InstanceID; given != pooled {
					t.Errorf("the host of type %s was given: %t; got one of type %s", first.InstanceType, given, h.InstanceType)
				}
			})
		})
	}
}

package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// noQueue is a queue that does not exist.
type noQueue struct{ fleet.Queue }

func (noQueue) Send(context.Context, ...lifecycle.Message) error { return lifecycle.ErrRefused }

func (noQueue) Receive(context.Context, lifecycle.QueueName, int) ([]lifecycle.Delivery, error) {
	return nil, lifecycle.ErrRefused
}

// TestWithoutAQueue: it is a hint, and the index knows as much.
func TestWithoutAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) { o.Queue = noQueue{o.Queue} })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		w.mustProvision(ctx, demand("2", "b", 2))
		if n := w.machines(); n != 2 {
			t.Errorf("%d machines live, want the same 2", n)
		}
	})
}

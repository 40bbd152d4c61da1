package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// lostLaunch is a cloud that launches a batch, and whose answer to its first call is lost.
type lostLaunch struct {
	fleet.Compute
	mu sync.Mutex
	// launches and looks are how often a batch was launched, and how often its machines were looked for.
	launches, looks int
}

func (c *lostLaunch) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	machines, err := c.Compute.Launch(ctx, order)
	if !strings.HasPrefix(order.RequestID, "batch-") {
		return machines, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.launches++; c.launches == 1 && err == nil {
		return nil, &lifecycle.UnavailableError{What: "launch", Err: errors.New("the answer is lost")}
	}
	return machines, err
}

func (c *lostLaunch) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if strings.HasPrefix(order.RequestID, "batch-") {
		c.mu.Lock()
		c.looks++
		c.mu.Unlock()
	}
	return c.Compute.Launched(ctx, order)
}

// The machines of a batch whose answer was lost are looked for, and its call is not made again. Its row says that all of them came.
func TestABatchWhoseAnswerIsLostIsNotLaunchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cloud := &lostLaunch{Compute: w.compute}
		w.fleet = w.newFleet("first", gathering, func(o *fleet.Options) { o.Compute = cloud })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		var callers sync.WaitGroup
		for _, run := range []string{"alone", "b", "c"} {
			callers.Go(func() { w.provisionQuietly(ctx, demand(run, "r", 1)) })
			time.Sleep(time.Millisecond)
		}
		callers.Wait()
		if cloud.launches != 1 || cloud.looks == 0 || w.machines() != 3 {
			t.Errorf("%d machines after %d launches and %d looks, want 3 after one launch", w.machines(), cloud.launches, cloud.looks)
		}
		rows := w.batchesOf("default")
		if len(rows) != 1 || rows[0].Outcome != lifecycle.OutcomeReady || rows[0].Reason != "2 of 2 machines were launched" {
			t.Errorf("batches %+v, want one that is ready", rows)
		}
	})
}

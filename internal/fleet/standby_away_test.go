package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host that listens ahead of need is looked up on GitHub. While GitHub does not answer, no other host waits for that.
func TestAHostThatGitHubIsAskedAboutHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, listening)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		down := func(is bool) {
			w.github.mu.Lock()
			defer w.github.mu.Unlock()
			w.github.down = is
		}
		w.set(func() { w.warming = true })
		w.mustProvision(ctx, demand("1", "first", 2))
		w.release(ctx, "1", true)
		w.set(func() { w.warming = false })
		time.Sleep(2 * time.Second) // both say that they listen
		down(true)
		asked, other := w.records()[0], w.records()[1]
		if !asked.Warming() || !other.Warming() {
			t.Fatalf("%+v, %+v", asked.Standby, other.Standby)
		}
		other.Threshold = time.Now().Add(8 * time.Second) // it is due after the one that GitHub is asked about
		other.DueAt = other.Threshold
		if _, err := w.store.UpdateInstance(ctx, other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if r := w.record(other.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("the other host is %s", r.Condition())
		}
		down(false)
		time.Sleep(10 * time.Second)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if r := w.record(asked.HostKey); !r.Hot() {
			t.Errorf("the host that GitHub was asked about: %s, %+v", r.Condition(), r.Standby)
		}
	})
}

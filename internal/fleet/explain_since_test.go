package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
)

// ofRun2 is what is said of the only request of run 2, which waits.
func (w *world) ofRun2(ctx context.Context, want string) {
	w.t.Helper()
	e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
	if err != nil || !strings.Contains(e.Sentences[0], want) {
		w.t.Errorf("%v: %q, want %q", err, e.Sentences, want)
	}
}

// A shortage has lasted since the first of the launches in a row that were short.
func TestSinceWhenCapacityIsShort(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 0)
		outcome := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, demandOf(repository, "2", 1, 1, 10*time.Minute))
			outcome <- err
		}()
		time.Sleep(5 * time.Minute)
		w.ofRun2(ctx, ", since 00:00:00Z. The launch is tried again until")
		w.compute.SetCapacity("*", 1)
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	})
}

// A limit that keeps a request after a pause of its pool has kept it since the pause was over, and a pause says itself since when it lasts.
func TestSinceWhenALimitKeepsARequestAfterAPause(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 1}, func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demandOf(repository, "1", 1, 1, time.Minute))
		w.pause(ctx, "default", true)
		outcome := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, demandOf(repository, "2", 1, 1, 20*time.Minute))
			outcome <- err
		}()
		time.Sleep(5 * time.Minute)
		w.ofRun2(ctx, "pool default is paused since 2000-01-01T00:00:00Z")
		w.pause(ctx, "default", false)
		time.Sleep(5 * time.Minute)
		w.ofRun2(ctx, "run 1 has 1, since 00:05:0")
		w.release(ctx, "1", false)
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	})
}

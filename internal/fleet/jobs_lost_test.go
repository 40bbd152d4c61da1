package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	jobRows "github.com/remuda-ci/remuda/internal/store"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// A host is lost after its job began, and before its request is settled. The request gets another host. The slot goes on with
// that, so that the pool does not have more hosts than its maximum, and the next job gets it.
func TestAHostLostBeforeItsRequestIsSettled(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		lost := false
		w.forge["*"] = func(p *lifecycle.Report) {
			if !lost {
				p.Signal = "" // the request does not know yet that the host is ready
			}
		}
		hear := w.hub.hear
		w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
			if webhook.Job.Status == lifecycle.StatusInProgress && !lost {
				id := runnername.InstanceOf(webhook.Job.RunnerName)
				w.set(func() { lost, w.deaf[id] = true, true })
				w.compute.Kill(id)
			}
			return hear(ctx, webhook)
		}
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
			w.hub.queue(ctx, poolJob(2, time.Now().Add(time.Second)), 5*time.Minute)
			w.until("both jobs began", 15*time.Minute, func() bool {
				if n := len(w.records(lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning)); n > 1 {
					t.Fatalf("%d hosts work for a pool of one: %+v", n, w.turns())
				}
				return w.ran(1, 2)()
			})
			if !lost || w.turns().Assigned != 1 {
				t.Errorf("slots %+v, want the first one to serve both jobs", w.turns())
			}
			w.until("the pool at rest", 15*time.Minute, w.atRest)
		})
	})
}

// A job was found in the list of those that wait, and then its row was lost. It is found again.
func TestAFoundJobWhoseRowIsLost(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.hub.noDeliveries, w.hub.lose = true, func(v lifecycle.Webhook) bool { return v.Job.ID == 2 && v.Job.Status == lifecycle.StatusQueued }
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 10*time.Minute)
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Minute)
			w.until("the second job is found", 6*time.Minute, func() bool {
				_, err := w.store.Job(ctx, 2)
				return err == nil
			})
			w.store.Restore(jobRows.Jobs.Kind, store.New(time.Now), func(jobRows.Key) bool { return true })
			w.until("both jobs ran", 20*time.Minute, w.ran(1, 2))
		})
	})
}

package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// slowStore is a store that takes its time to create a request.
type slowStore struct {
	mortalStore
	takes time.Duration
}

func (s slowStore) CreateRequest(ctx context.Context, q lifecycle.Request) error {
	time.Sleep(s.takes)
	return s.mortalStore.CreateRequest(ctx, q)
}

// slowHub is GitHub when it takes its time to register a runner.
type slowHub struct {
	*hub
	takes time.Duration
}

func (h slowHub) JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	time.Sleep(h.takes)
	return h.hub.JIT(ctx, repository, name, labels)
}

// warm has so many hosts in the pool.
func (w *world) warm(ctx context.Context, hosts int) {
	w.t.Helper()
	for id := range int64(hosts) {
		w.hub.queue(ctx, poolJob(id+1, time.Now()), 2*time.Second)
	}
	w.until("hosts in the pool", 5*time.Minute, func() bool { return len(w.records(lifecycle.StateIdle)) == hosts && w.atRest() })
}

// A turn that one replica has just given is its to begin: another one that looks
// before the request is written does not begin it too, or one turn has two hosts.
func TestATurnIsBegunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		var slow *fleet.Fleet
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.hub.live(ctx)
		warming, warmed := context.WithCancel(ctx)
		go w.fleet.ServeJobs(warming)
		go w.fleet.Sweep(warming)
		synctest.Wait()
		w.warm(ctx, 3)
		warmed()
		synctest.Wait()
		one := func(o *fleet.Options) {
			withJobs(o, w.hub, 1)
			o.Jobs.GitHub = slowHub{w.hub, time.Second}
		}
		quick := w.newFleet("quick", one)
		slow = w.newFleet("slow", one, func(o *fleet.Options) {
			s := slowStore{mortalStore{w.store, &fate{}}, 500 * time.Millisecond}
			o.Store, o.Jobs.Store = s, s
		})
		go quick.ServeJobs(ctx)
		go slow.ServeJobs(ctx)
		synctest.Wait()
		w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
			if webhook.Job.ID == 10 {
				return slow.TakeWebhook(ctx, webhook, time.Now())
			}
			return quick.TakeWebhook(ctx, webhook, time.Now())
		})
		w.hub.queue(ctx, poolJob(10, time.Now()), 5*time.Second)
		w.until("the turn is given", time.Minute, func() bool { return len(w.turns().Open) == 1 })
		w.hub.queue(ctx, poolJob(11, time.Now()), 5*time.Second)
		w.until("both jobs over", 5*time.Minute, w.allOver)
		if n := w.hub.calls("JIT"); n != 3+2 {
			t.Errorf("%d registrations for two jobs", n-3)
		}
	})
}

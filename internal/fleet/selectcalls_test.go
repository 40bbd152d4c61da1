package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// indexReads is a store that notes which lists of idle hosts are read, and forgets them when a host is claimed if claims is set.
type indexReads struct {
	*store.Store
	claims bool
	read   []string
}

func (s *indexReads) PooledInstances(
	ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf,
) (lifecycle.Page[lifecycle.Record], error) {
	s.read = append(s.read, fmt.Sprintf("%s hosts of %q", q.UsageClass, trustKey))
	return s.Store.PooledInstances(ctx, pool, q, trustKey, page)
}

func (s *indexReads) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	if s.claims {
		s.read = nil
	}
	return s.Store.ClaimInstance(ctx, c)
}

// A request for more hosts than stay awake asks for hosts that rest, but not for fresh ones in a pool that has none.
func TestNoFreshHostsAreLookedForWhereNoneAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := rested(t, 9, 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		s := &indexReads{Store: w.store}
		w.fleet = w.newFleet("reads", longIdle(3), func(o *fleet.Options) {
			p := o.Pools["default"]
			p.Policy.WarmTime = 4 * time.Hour // fresh hosts would rest as others do
			o.Store, o.Pools["default"] = s, p
		})
		w.mustProvision(ctx, demand("1", "a", 10)) // and those that rest are not enough
		if !slices.Contains(s.read, `on-demand hosts of "acme/app"`) || slices.Contains(s.read, `on-demand hosts of ""`) {
			t.Errorf("read: %q, want hosts of the repository alone", s.read)
		}
	})
}

// A request that may have on-demand hosts by now, and gets a spot host from the pool, looks for nothing more.
func TestARequestThatHasItsHostsLooksForNoMore(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		s := &indexReads{Store: w.store, claims: true}
		w.fleet = w.newFleet("reads", warmed(fleet.WarmPool{}), func(o *fleet.Options) { o.Store = s })
		spot := func(run string) fleet.Demand {
			d := demandOf(repository, run, 1, 1, 20*time.Minute)
			d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, true
			return d
		}
		w.mustProvision(ctx, spot("1")) // the one machine that there is on spot
		w.compute.SetCapacity("*", 0)
		p := w.newProvision(w.fleet, spot("2"))
		stepUntil(ctx, t, p, func() bool { return p.Request().OnDemand })
		w.release(ctx, "1", true)
		if err := w.fleet.Drive(ctx, p, patience); err != nil {
			t.Fatal(err)
		}
		if r := w.only(); r.RunID != "2" || len(s.read) > 0 {
			t.Errorf("run %s has the host, and after its claim there were read: %q", r.RunID, s.read)
		}
	})
}

// A request that has reserved all its hosts reads no ledger again when it has claimed some of them.
func TestAReservationIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, ctx := 0, t.Context()
		w := newWorld(t, limited(policy.Limits{HostsPerOwner: 10}), func(o *fleet.Options) { o.Guards = countedAccounts{o.Guards, &calls} })
		w.useOnce(ctx, 1)
		p := w.newProvision(w.fleet, demand("1", "a", 3))
		stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 1 })
		if n := w.used(ofOwner); n != 3 {
			t.Fatalf("%d hosts are reserved, want 3", n)
		}
		calls = 0
		stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 3 })
		if calls > 0 {
			t.Errorf("%d calls for ledgers, want none", calls)
		}
	})
}

// The message of a host that has no record any more keeps no request of a job from another host. It is deleted.
func TestAnOldMessageIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			old := lifecycle.Message{
				HostKey: "i-gone", InstanceID: "i-gone", Assignment: 2, Pool: jobPool, TrustKey: repository, Threshold: time.Now().Add(time.Hour),
				ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096,
			}
			if err := w.queue.Send(ctx, old); err != nil {
				t.Fatal(err)
			}
			d := demand("1", "a", 1)
			d.Spec.Pool, d.Spec.JobsOf, d.Spec.Labels = jobPool, repository, []string{"remuda-small"}
			w.mustProvision(ctx, d)
			if left := w.messages(ctx); len(left) > 0 {
				t.Errorf("messages are left: %v", left)
			}
		})
	})
}

// receives is a queue that notes how many messages are asked for.
type receives struct {
	fleet.Queue
	mu    sync.Mutex
	asked []int
	sends int
}

func (q *receives) Receive(ctx context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	q.mu.Lock()
	q.asked = append(q.asked, limit)
	q.mu.Unlock()
	return q.Queue.Receive(ctx, name, limit)
}

func (q *receives) Send(ctx context.Context, messages ...lifecycle.Message) error {
	q.mu.Lock()
	q.sends++
	q.mu.Unlock()
	return q.Queue.Send(ctx, messages...)
}

// A request asks the queue for as many messages as it lacks hosts, also in calls at once: others wait for those that it has in excess.
func TestNoMoreMessagesThanHostsThatLack(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 40)
		q := &receives{Queue: w.queue}
		w.fleet = w.newFleet("reads", func(o *fleet.Options) { o.Queue = q })
		w.mustProvision(ctx, demand("1", "a", 35))
		slices.Sort(q.asked)
		if diff := cmp.Diff([]int{5, 10, 10, 10}, q.asked); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}

// The messages of hosts that one request wakes are sent in one call.
func TestTheMessagesOfWokenHostsAreSentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, keys := rested(t, 9, 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		q := &receives{Queue: w.queue}
		w.fleet = w.newFleet("sends", longIdle(3), func(o *fleet.Options) { o.Queue = q })
		w.mustProvision(ctx, demand("1", "a", 3))
		if n := len(w.resting(keys)); n != 3 || q.sends != 1 {
			t.Errorf("%d hosts rest, want 3; %d calls for the messages of the others, want 1", n, q.sends)
		}
	})
}

// A request writes the hosts that the queue gave into its row before it asks the index for those that it still lacks.
func TestClaimsAreRecordedBeforeTheIndexIsAsked(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 1)
		s := &indexReads{Store: w.store}
		w.fleet = w.newFleet("reads", func(o *fleet.Options) { o.Store = s })
		p := w.newProvision(w.fleet, demand("1", "a", 2))
		stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 1 })
		if len(s.read) > 0 {
			t.Errorf("before that there were read: %q", s.read)
		}
		if stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 2 }); len(s.read) == 0 {
			t.Error("the index was not asked before the launch")
		}
	})
}

// A host whose runner GitHub refuses to register for one request is free for the next one at once.
func TestAHostThatARefusedRequestReceivedIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			w.queueAll(ctx, 1, 10*time.Second)
			w.until("the host is idle again", 5*time.Minute, func() bool { return w.allOver() && len(w.pooledHosts()) == 1 })
			refuse := func(of string) {
				w.hub.mu.Lock()
				defer w.hub.mu.Unlock()
				w.hub.refuses = of
			}
			of := func(run string) fleet.Demand {
				d := demand(run, "a", 1)
				d.Spec.Pool, d.Spec.JobsOf, d.Spec.Labels = jobPool, repository, []string{"remuda-small"}
				return d
			}
			refuse(repository)
			if _, err := w.provision(ctx, of("1")); err == nil {
				t.Fatal("the first request was not refused")
			}
			refuse("")
			began := time.Now()
			got := w.mustProvision(ctx, of("2"))
			if took := time.Since(began); took > 5*time.Second || got[0].Assignment < 2 {
				t.Errorf("the second request had %s of assignment %d after %s", got[0].InstanceID, got[0].Assignment, took)
			}
		})
	})
}

package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// ownersCaches gives the default pool a cache of each repository, on hosts that serve all repositories of an owner.
func ownersCaches(o *fleet.Options) {
	p := pool(lifecycle.ReuseSameOwner)
	p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}}
	o.Pools["default"], o.Sources = p, &sources{}
}

// keyOf is the key of a repository's cache.
func keyOf(repository string) string { return cache.Spec{Name: "go"}.Key(repository) }

// give gives a pooled host caches of so many MiB of some repositories.
func (w *world) give(ctx context.Context, id string, mib int64, repositories ...string) {
	w.t.Helper()
	var held []cache.Held
	for _, r := range repositories {
		held = append(held, cache.Held{Key: keyOf(r), Bytes: mib << 20, CommittedAt: time.Now()})
	}
	r := w.record(id)
	r.Caches = cache.ListOf(held...)
	if _, err := w.store.UpdateInstance(ctx, r); err != nil {
		w.t.Fatal(err)
	}
}

// noQueues is a queue of a fleet that is to use none.
type noQueues struct {
	fleet.Queue
	t *testing.T
}

func (q noQueues) Send(context.Context, ...lifecycle.Message) error {
	q.t.Error("a message was sent")
	return nil
}

func (q noQueues) Receive(context.Context, lifecycle.QueueName, int) ([]lifecycle.Delivery, error) {
	q.t.Error("a queue was read")
	return nil, nil
}

// TestClaimsByCaches: each run gets the host with its cache, and its record, the event and the answer of why say so. No queue is used, not at the
// release either.
func TestClaimsByCaches(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) { ownersCaches(o); o.Queue = noQueues{o.Queue, t} }, func(ctx context.Context, t *testing.T, w *world) {
		of := map[string]string{}
		for i := range 9 {
			id, name := w.pooled(ctx, "acme", false), fmt.Sprintf("acme/app%d", i)
			w.give(ctx, id, 100, name)
			of[name] = id
		}
		for _, i := range []int{7, 0, 8} {
			d := demand(fmt.Sprint(i), fmt.Sprint(i), 1)
			d.Repository = fmt.Sprintf("acme/app%d", i)
			got := w.mustProvision(ctx, d)
			if got[0].InstanceID != of[d.Repository] {
				t.Errorf("a run of %s got the host %s, want %s", d.Repository, got[0].InstanceID, of[d.Repository])
			}
			const why = "it had the run's cache, 100 MiB"
			if got[0].Arrival.Chosen != why {
				t.Errorf("it was chosen since %q", got[0].Arrival.Chosen)
			}
			w.says(ctx, got[0].InstanceID, "since "+why)
			if _, err := w.fleet.NewProvision(d); err != nil {
				t.Fatal(err)
			}
		}
		d := demand("20", "20", 1)
		d.Repository = "acme/new"
		if got := w.mustProvision(ctx, d); got[0].Arrival.Chosen != "no idle host had a cache of the run" || got[0].Assignment < 2 {
			t.Errorf("a run without a cache has %s, since %q", got[0].InstanceID, got[0].Arrival.Chosen)
		}
		release := w.fleet.NewRelease(d.Repository, "20", 0, true)
		if err := w.fleet.Drive(ctx, release, patience); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClaimsByCachesOnlyWhatIsTheirs: hosts of another owner, of another type, held ones and those at their end are not chosen, whatever they have.
func TestClaimsByCachesOnlyWhatIsTheirs(t *testing.T) {
	for name, change := range map[string]func(r *lifecycle.Record){
		"another owner": func(r *lifecycle.Record) { r.TrustKey = "other" },
		"another pool":  func(r *lifecycle.Record) { r.Pool = "once" },
		"held":          func(r *lifecycle.Record) { r.Hold = time.Now().Add(time.Hour) },
		"at its end":    func(r *lifecycle.Record) { r.Threshold = time.Now().Add(time.Second) },
		"retiring":      func(r *lifecycle.Record) { r.Retiring = true },
		"small":         func(r *lifecycle.Record) { r.CPU = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, ownersCaches, func(ctx context.Context, t *testing.T, w *world) {
				best, other := w.pooled(ctx, "acme", false), w.pooled(ctx, "acme", false)
				w.give(ctx, best, 500, repository)
				r := w.record(best)
				change(&r)
				if _, err := w.store.UpdateInstance(ctx, r); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{other}, ids(w.mustProvision(ctx, demand("1", "a", 1)))); diff != "" {
					t.Errorf("the request's host (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestClaimsByCachesSeeAll: a request for more hosts than one look has finds all that are idle, fresh ones too, before one is launched. The hosts
// that were pooled last are looked at first.
func TestClaimsByCachesSeeAll(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) { ownersCaches(o); warmed(fleet.WarmPool{})(o) }, func(ctx context.Context, t *testing.T, w *world) {
		const idle = 120 // more than a page
		old := w.pooled(ctx, "acme", false)
		w.give(ctx, old, 900, repository)
		for range idle - 2 {
			w.pooled(ctx, "acme", false)
		}
		fresh := w.pooled(ctx, "", false)
		one := ids(w.mustProvision(ctx, demand("1", "a", 1)))
		if slices.Contains(one, old) || slices.Contains(one, fresh) {
			t.Errorf("a request for one host looked at more than the newest of its trust key: it got %v", one)
		}
		p, err := w.provision(ctx, demand("2", "b", idle))
		if err != nil {
			t.Fatal(err)
		}
		got, launched := ids(p.Instances()), 0
		for _, taken := range p.Request().Taken {
			if !taken.Reused && taken.InstanceID != fresh {
				launched++
			}
		}
		if !slices.Contains(got, old) || !slices.Contains(got, fresh) || len(got) != idle || launched != 1 {
			t.Errorf("%d hosts, %d of them launched, the oldest %v and the fresh one %v among them", len(got), launched, slices.Contains(got, old), slices.Contains(got, fresh))
		}
	})
}

// TestJobsByCaches: a job of a job pool gets the idle host with the cache of its repository.
func TestJobsByCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			withJobs(o, w.hub, 3)
			p := o.Pools[jobPool]
			p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}}
			o.Pools[jobPool], o.Sources, o.Queue = p, &sources{}, noQueues{o.Queue, t}
		})
		w.live(t, func(ctx context.Context) {
			w.queueAll(ctx, 3, 10*time.Second)
			w.until("all are idle again", 5*time.Minute, func() bool { return w.allOver() && len(w.pooledHosts()) == 3 })
			best := w.pooledHosts()[1]
			w.give(ctx, best.HostKey, 500, repository)
			w.hub.queue(ctx, poolJob(9, time.Now()), 10*time.Minute)
			w.until("it runs", time.Minute, w.ran(9))
			if r := w.ofJob(9); r.HostKey != best.HostKey || r.Arrival.Chosen != "it had the run's cache, 500 MiB" {
				t.Errorf("it runs on %s, since %q, want %s", r.InstanceID, r.Arrival.Chosen, best.InstanceID)
			}
		})
	})
}

// pooledHosts are the hosts that wait.
func (w *world) pooledHosts() []lifecycle.Record {
	return slices.DeleteFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool { return !r.Pooled() })
}

// newestReads is a store that counts how often the newest idle hosts are listed.
type newestReads struct {
	*store.Store
	reads atomic.Int64
}

func (s *newestReads) ClaimablePooled(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error) {
	s.reads.Add(1)
	return s.Store.ClaimablePooled(ctx, pool, q, trustKey, limit)
}

// TestAClaimByAnotherRequestOfTheReplica: the host that is launched instead says that its request lost an idle one.
func TestAClaimByAnotherRequestOfTheReplica(t *testing.T) {
	inBubbleOf(t, ownersCaches, func(ctx context.Context, t *testing.T, w *world) {
		w.give(ctx, w.pooled(ctx, "acme", false), 100, repository)
		s := &newestReads{Store: w.store}
		w.fleet = w.newFleet("reads", ownersCaches, func(o *fleet.Options) { o.Store = s })
		late := w.newProvision(w.fleet, demand("2", "a", 1))
		stepUntil(ctx, t, late, func() bool { return s.reads.Load() == 1 })
		w.mustProvision(ctx, demand("1", "a", 1))
		if err := w.fleet.Drive(ctx, late, patience); err != nil {
			t.Fatal(err)
		}
		if r := late.Instances()[0]; r.Assignment != 1 || !slices.Equal(r.Arrival.Missed, []arrival.Miss{arrival.MissLost}) {
			t.Errorf("assignment %d of %s, which missed %q", r.Assignment, r.InstanceID, r.Arrival.Missed)
		}
	})
}

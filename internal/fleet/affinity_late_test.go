package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// lateIndex lists as DynamoDB does while its index is late: a host that was just claimed is in the index, takes a place of the list, and is left out when its
// row is read.
type lateIndex struct {
	fleet.Store
	mu      sync.Mutex
	claimed map[string]lateEntry
}

// lateEntry is a host as the index has it, and when it was claimed.
type lateEntry struct {
	lifecycle.Record
	at time.Time
}

const lateBy = 500 * time.Millisecond

func (s *lateIndex) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	before, _ := s.Store.Instance(ctx, c.HostKey)
	r, err := s.Store.ClaimInstance(ctx, c)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claimed[c.HostKey] = lateEntry{before, time.Now()}
	}
	return r, err
}

func (s *lateIndex) ClaimablePooled(ctx context.Context, pool string, q lifecycle.QueueName, key string, limit int) ([]lifecycle.Record, error) {
	listed, err := s.Store.ClaimablePooled(ctx, pool, q, key, 1000)
	s.mu.Lock()
	defer s.mu.Unlock()
	late := map[string]bool{}
	for hostKey, entry := range s.claimed {
		if time.Since(entry.at) < lateBy {
			late[hostKey] = true
			listed = append(listed, entry.Record)
		}
	}
	slices.SortFunc(listed, func(a, b lifecycle.Record) int { return b.PooledAt.Compare(a.PooledAt) })
	listed = listed[:min(limit, len(listed))]
	return slices.DeleteFunc(listed, func(r lifecycle.Record) bool { return late[r.HostKey] }), err
}

// TestABurstWithALateIndex: 40 requests at once have 60 idle hosts to choose among, and none launches one.
func TestABurstWithALateIndex(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) {
		ownersCaches(o)
		o.Store = &lateIndex{Store: o.Store, claimed: map[string]lateEntry{}}
	}, func(ctx context.Context, t *testing.T, w *world) {
		for range 60 {
			w.pooled(ctx, "acme", false)
		}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				p, err := w.provision(ctx, demand(fmt.Sprint(i), fmt.Sprint(i), 1))
				if err != nil || !p.Request().Taken[0].Reused {
					t.Errorf("request %d launched a host: %v", i, err)
				}
			})
		}
		wg.Wait()
	})
}

// lostClaim loses the answer to the first claim, and has something done before its request tries again. Its listings show what was idle at first.
type lostClaim struct {
	fleet.Store
	lost sync.Once
	then func()
	old  []lifecycle.Record
}

func (s *lostClaim) ClaimInstance(ctx context.Context, c lifecycle.Claim) (r lifecycle.Record, err error) {
	r, err = s.Store.ClaimInstance(ctx, c)
	s.lost.Do(func() {
		s.then()
		r, err = lifecycle.Record{}, lifecycle.ErrUnavailable
	})
	return r, err
}

func (s *lostClaim) ClaimablePooled(context.Context, string, lifecycle.QueueName, string, int) ([]lifecycle.Record, error) {
	return s.old, nil
}

// TestAClaimWithoutAnAnswer: a request whose claim had no answer has its host, although another request tried it in the meantime.
func TestAClaimWithoutAnAnswer(t *testing.T) {
	var s *lostClaim
	inBubbleOf(t, func(o *fleet.Options) {
		ownersCaches(o)
		s = &lostClaim{Store: o.Store}
		o.Store = s
	}, func(ctx context.Context, t *testing.T, w *world) {
		id := w.pooled(ctx, "acme", false)
		s.old = []lifecycle.Record{w.record(id)}
		var wg sync.WaitGroup
		s.then = func() { wg.Go(func() { w.mustProvision(ctx, demand("2", "b", 1)) }) }
		if got := ids(w.mustProvision(ctx, demand("1", "a", 1))); !slices.Equal(got, []string{id}) {
			t.Errorf("the request has %v, and claimed %s", got, id)
		}
		wg.Wait()
	})
}

// TestMessagesOfAPoolThatGainedCaches: messages that a pool left in a queue which it shares are deleted by the first claims that meet them.
func TestMessagesOfAPoolThatGainedCaches(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) {
		p := pool(lifecycle.ReuseSameOwner)
		p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}}
		o.Pools["gained"], o.Sources = p, &sources{}
	}, func(ctx context.Context, t *testing.T, w *world) {
		for range 30 {
			r := w.record(w.pooled(ctx, "acme", false))
			r.Pool = "gained"
			if err := w.queue.Send(ctx, r.Message()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 40 { // each may receive one message at a time
			w.mustProvision(ctx, demand(fmt.Sprint(i), fmt.Sprint(i), 1))
		}
		if left := w.messages(ctx); len(left) > 0 {
			t.Errorf("%d messages are left", len(left))
		}
	})
}

// takenIndex lists as the index does when others have just taken the newest hosts.
type takenIndex struct {
	fleet.Store
	mu     sync.Mutex
	limits []int // of the pages that were read from the oldest on
}

func (s *takenIndex) ClaimablePooled(context.Context, string, lifecycle.QueueName, string, int) ([]lifecycle.Record, error) {
	return nil, nil
}

func (s *takenIndex) PooledInstances(
	ctx context.Context, pool string, q lifecycle.QueueName, key string, page lifecycle.PageOf,
) (lifecycle.Page[lifecycle.Record], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = append(s.limits, page.Limit)
	return s.Store.PooledInstances(ctx, pool, q, key, page)
}

// TestClaimsByCachesOfTakenHosts: a request whose newest hosts were taken reads some of the oldest, and a full page only if those are not enough.
func TestClaimsByCachesOfTakenHosts(t *testing.T) {
	for hosts, want := range map[int][]int{1: {25}, 20: {40}, 55: {lifecycle.DefaultPageSize}} {
		s := &takenIndex{}
		inBubbleOf(t, func(o *fleet.Options) {
			ownersCaches(o)
			s.Store, o.Store = o.Store, s
		}, func(ctx context.Context, t *testing.T, w *world) {
			for range 60 {
				w.pooled(ctx, "acme", false)
			}
			got, err := w.provision(ctx, demand("1", "a", hosts))
			if err != nil {
				t.Fatal(err)
			}
			for _, taken := range got.Request().Taken {
				if !taken.Reused {
					t.Errorf("a request for %d hosts launched %s beside idle ones", hosts, taken.InstanceID)
				}
			}
		})
		if !slices.Equal(s.limits, want) {
			t.Errorf("a request for %d hosts read pages of %v, want %v", hosts, s.limits, want)
		}
	}
}

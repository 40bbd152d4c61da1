package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// warmed are options of a fleet whose pools have warm hosts.
func warmed(warm fleet.WarmPool) func(*fleet.Options) {
	return func(o *fleet.Options) {
		for name, p := range o.Pools {
			p.Warm = &warm
			o.Pools[name] = p
		}
	}
}

// pooled puts an idle host into the world, and its message if told is set. A
// host without a trust key is fresh.
func (w *world) pooled(ctx context.Context, trustKey string, told bool) string {
	w.t.Helper()
	order := lifecycle.LaunchOrder{
		Token: time.Now().String() + trustKey, RequestID: "before", Number: 1, Count: 1, Pool: "default", ResourceClass: "large",
		CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
	}
	machines, err := w.compute.Launch(ctx, order)
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	r := lifecycle.LaunchedWarm(machines[0], lifecycle.Request{Spec: lifecycle.Spec{Pool: "default"}}, now, lifecycle.DefaultPolicy())
	r.ReleasedAt, r.PooledAt, r.Threshold, r.DueAt, r.Version = time.Time{}, now, now.Add(time.Hour), now.Add(time.Hour), 1
	if trustKey != "" {
		r.TrustKey, r.Uses, r.Assignment = trustKey, 1, 2
	}
	if err := w.store.CreateInstance(ctx, r); err != nil {
		w.t.Fatal(err)
	}
	if told {
		if err := w.queue.Send(ctx, r.Message()); err != nil {
			w.t.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond)
	return r.InstanceID
}

// Hosts that are bound to the run's repository are taken first, fresh ones next,
// and only then is one launched; by the queue and by the index alike.
func TestBoundHostsComeBeforeFreshOnes(t *testing.T) {
	tests := map[string]struct{ boundTold, freshTold bool }{
		"both by message":                       {true, true},
		"bound by message, fresh by index":      {true, false},
		"bound by index, fresh by message":      {false, true},
		"both by index, whose message was lost": {false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				w.fleet = w.newFleet("warm", warmed(fleet.WarmPool{}))
				fresh := []string{w.pooled(ctx, "", tt.freshTold), w.pooled(ctx, "", tt.freshTold)}
				w.pooled(ctx, "acme/other", true)
				bound := w.pooled(ctx, repository, tt.boundTold)

				first := w.mustProvision(ctx, demand("1", "a", 1))
				if diff := cmp.Diff([]string{bound}, ids(first)); diff != "" {
					t.Errorf("the first request's host (-want +got):\n%s", diff)
				}
				p, err := w.provision(ctx, demand("2", "b", 3))
				if err != nil {
					t.Fatal(err)
				}
				got, reused := ids(p.Instances()), 0
				for _, taken := range p.Request().Taken {
					if taken.Reused {
						reused++
					}
				}
				if !slices.Contains(got, fresh[0]) || !slices.Contains(got, fresh[1]) || reused != 2 || len(got) != 3 {
					t.Errorf("the second request has %v (%d reused), want %v and one launched", got, reused, fresh)
				}
				for _, r := range p.Instances() {
					if r.TrustKey != repository || r.Uses != 1 {
						t.Errorf("host %s has trust key %q and %d uses", r.InstanceID, r.TrustKey, r.Uses)
					}
				}
			})
		})
	}
}

// A fresh host is bound by its first run: no other repository gets it after that.
func TestAFreshHostIsBoundOnce(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("warm", warmed(fleet.WarmPool{}))
		fresh := w.pooled(ctx, "", true)
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		other := demand("2", "b", 1)
		other.Repository = "acme/other"
		if got := ids(w.mustProvision(ctx, other)); slices.Contains(got, fresh) {
			t.Errorf("host %s served %s and then %s", fresh, repository, other.Repository)
		}
		if got := ids(w.mustProvision(ctx, demand("3", "c", 1))); !slices.Contains(got, fresh) {
			t.Errorf("the next run of %s got %v, want its host %s again", repository, got, fresh)
		}
	})
}

// The index has a host whose message was lost, however many others have been idle
// for longer and may not be used by the run.
func TestIdleHostsHideNoOther(t *testing.T) {
	const crowd = 2*lifecycle.DefaultPageSize + 10
	bound := func(r *lifecycle.Record) { r.TrustKey, r.Uses, r.Assignment = repository, 1, 2 }
	otherPool := func(r *lifecycle.Record) { r.Pool = "build" }
	tests := map[string]struct {
		trustKey string
		others   []func(*lifecycle.Record)
	}{
		"fresh, of another pool":       {"", []func(*lifecycle.Record){otherPool}},
		"bound to it, of another pool": {repository, []func(*lifecycle.Record){bound, otherPool}},
		"bound to it, of another type": {repository, []func(*lifecycle.Record){bound, func(r *lifecycle.Record) { r.InstanceType = "x1.large" }}},
		"fresh, of another type":       {"", []func(*lifecycle.Record){func(r *lifecycle.Record) { r.InstanceType = "x1.large" }}},
		"fresh, and retiring":          {"", []func(*lifecycle.Record){func(r *lifecycle.Record) { r.Retiring = true }}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				w.fleet = w.newFleet("warm", warmed(fleet.WarmPool{}))
				host := w.pooled(ctx, tt.trustKey, false)
				found, err := w.store.Instance(ctx, host)
				if err != nil {
					t.Fatal(err)
				}
				for i := range crowd {
					r := found
					r.HostKey, r.TrustKey, r.Uses = fmt.Sprintf("crowd-%03d", i), "", 0
					r.InstanceID, r.PooledAt = r.HostKey, r.PooledAt.Add(-time.Minute)
					for _, change := range tt.others {
						change(&r)
					}
					if err := w.store.CreateInstance(ctx, r); err != nil {
						t.Fatal(err)
					}
				}
				if got := ids(w.mustProvision(ctx, demand("1", "a", 1))); !slices.Equal(got, []string{host}) {
					t.Errorf("the run has %v, want the idle host %s", got, host)
				}
			})
		})
	}
}

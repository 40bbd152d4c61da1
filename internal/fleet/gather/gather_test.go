package gather_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet/gather"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// replica has batches of its own, on a store and a cloud that it shares. Its first turn for a call is taken.
func replica(s ports.Store, c ports.Machines, every time.Duration) *gather.Batches {
	b := gather.New(ports.Rate{PerSecond: float64(time.Second) / float64(every), Burst: 1}, &gather.Batches{
		Store: s, Compute: c, Timing: ports.Timing{Takeover: time.Minute}, Log: hclog.NewNullLogger(),
		Ops: op.NewDriver(s, hclog.NewNullLogger(), rand.New(rand.NewPCG(1, 2)), nil, nil),
	})
	b.Join(request("other", 1), time.Now())
	return b
}

// request has a launch that is to be made.
func request(id string, launch int) lifecycle.Request {
	return lifecycle.Request{
		Repository: "acme/app", RunID: id, RequestID: id, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour),
		Spec: lifecycle.Spec{Pool: "default"}, Launches: launch,
		Launch: &lifecycle.LaunchOrder{Token: id + string(rune('0'+launch)), RequestID: id, Number: launch, Count: 1, Pool: "default", Repository: "acme/app", RunID: id,
			ResourceClass: "small", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"}},
	}
}

// join has a launch join a batch, and returns the request as its row says it.
func join(t *testing.T, b *gather.Batches, q lifecycle.Request) lifecycle.Request {
	t.Helper()
	if q.Launch.Batch = b.Join(q, time.Now()); q.Launch.Batch == "" {
		t.Fatalf("the launch of %s is to have a call of its own", q.RequestID)
	}
	return q
}

// await asks until the launch has its share, some times at most.
func await(t *testing.T, b *gather.Batches, q lifecycle.Request) gather.Share {
	t.Helper()
	for range 100 {
		share, err := b.Await(t.Context(), q, false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if share.Done {
			return share
		}
		time.Sleep(share.Wait)
	}
	t.Fatalf("the launch of %s never has its share", q.RequestID)
	return gather.Share{}
}

// Two replicas work on one request, so both have its batch. One makes the call, or a sweep of the other does. The other takes no further
// launch into that batch: it would have nothing of the call, at once, and so would the next one, and the one after it.
func TestABatchOfAnotherReplicaTakesNoMoreLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(time.Now)
		cloud, err := memory.New(memory.Options{Limits: placement.Limits{Zones: []string{"a"}}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		first, second := replica(s, cloud, time.Second), replica(s, cloud, time.Hour)
		q := request("a", 1)
		ofFirst, ofSecond := join(t, first, q), join(t, second, q)
		if ofFirst.Launch.Batch != ofSecond.Launch.Batch {
			t.Fatal("the replicas have two batches for one launch")
		}
		if share, err := second.Await(t.Context(), ofSecond, false, time.Now()); err != nil || share.Done {
			t.Fatalf("the second replica did not wait: %+v, %v", share, err)
		}
		led(t, first, ofFirst)
		resume(t, s, second, ofFirst.Launch.Batch)
		if share := await(t, second, ofSecond); len(share.Machines) != 1 {
			t.Errorf("the launch has %d machines of its batch, want 1", len(share.Machines))
		}
		if next := join(t, second, request("b", 1)); next.Launch.Batch == ofFirst.Launch.Batch {
			t.Error("another launch joined the batch, whose call was made")
		}
	})
}

// led has a replica write the row of its batch, and do nothing after that.
func led(t *testing.T, b *gather.Batches, q lifecycle.Request) {
	t.Helper()
	for {
		share, err := b.Await(t.Context(), q, false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if share.Wait == 0 {
			return
		}
		time.Sleep(share.Wait)
	}
}

// resume has the due sweep of a replica go on with a batch.
func resume(t *testing.T, s ports.Store, b *gather.Batches, id string) {
	t.Helper()
	page, err := s.DueRequests(context.Background(), time.Now().Add(time.Hour), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range page.Items {
		if q.RequestID != id {
			continue
		}
		for r := b.Resume(q); ; {
			progress, err := r.Step(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if progress == op.Done {
				return
			}
		}
	}
	t.Fatalf("batch %s is not due", id)
}

package gather_test

import (
	"context"
	"errors"
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
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
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

// badCloud counts calls, and loses answers or shows machines late.
type badCloud struct {
	ports.Machines
	launches, listings int
	// loses: a launch has no answer. makes: it makes its machines. blind: they are not shown yet.
	loses, makes, blind bool
}

func (c *badCloud) Launch(ctx context.Context, o lifecycle.LaunchOrder) (machines []lifecycle.Machine, err error) {
	c.launches++
	if c.makes {
		machines, err = c.Machines.Launch(ctx, o)
	}
	if c.loses {
		return nil, &lifecycle.UnavailableError{What: "launch", Err: errors.New("no answer")}
	}
	return machines, err
}

func (c *badCloud) Launched(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if c.listings++; c.blind {
		return nil, nil
	}
	return c.Machines.Launched(ctx, o)
}

func (c *badCloud) Describe(ctx context.Context, ids []string) ([]lifecycle.Machine, error) {
	machines, err := c.Machines.Describe(ctx, ids)
	for i := range machines {
		if c.blind {
			machines[i].State = lifecycle.MachineGone
		}
	}
	return machines, err
}

// inBadCloud has a launch in a batch of a replica, and another replica that does not know of the batch.
func inBadCloud(t *testing.T, cloud *badCloud, do func(t *testing.T, s *store.Store, first, other *gather.Batches, q lifecycle.Request)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := store.New(time.Now)
		machines, err := memory.New(memory.Options{Limits: placement.Limits{Zones: []string{"a"}}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		cloud.Machines = machines
		first, other := replica(s, cloud, time.Second), replica(s, cloud, time.Second)
		q := join(t, first, request("a", 1))
		q.Version = 1
		if err := s.CreateRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		do(t, s, first, other, q)
	})
}

// rowOf is the row of the batch of a launch.
func rowOf(t *testing.T, s *store.Store, q lifecycle.Request) lifecycle.Request {
	t.Helper()
	row, err := s.Request(t.Context(), batch.Repository, batch.Run("default"), q.Launch.Batch)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// The first call of a batch has nothing to look for. One that another process may have made is looked for, and made if there is nothing.
func TestACallWithoutAnAnswerIsLookedFor(t *testing.T) {
	for name, test := range map[string]struct {
		makes    bool
		launches int
	}{"it was made": {true, 1}, "it was not made": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			cloud := &badCloud{loses: true, makes: test.makes}
			inBadCloud(t, cloud, func(t *testing.T, _ *store.Store, first, other *gather.Batches, q lifecycle.Request) {
				led(t, first, q)
				if _, err := first.Await(t.Context(), q, false, time.Now()); !errors.Is(err, lifecycle.ErrUnavailable) || cloud.launches != 1 || cloud.listings != 0 {
					t.Fatalf("%d calls and %d listings: %v; want one call alone", cloud.launches, cloud.listings, err)
				}
				cloud.loses, cloud.makes = false, true
				if share := await(t, other, q); len(share.Machines) != 1 || share.Short != "" || share.Answered == test.makes {
					t.Errorf("the launch has %+v", share)
				}
				if cloud.launches != test.launches || cloud.listings != 1 {
					t.Errorf("%d calls and %d listings, want %d and 1", cloud.launches, cloud.listings, test.launches)
				}
			})
		})
	}
}

// What a call without an answer made may be shown late. Past the deadline it is not repeated, and its machines are waited for.
func TestACallWithoutAnAnswerPastTheDeadline(t *testing.T) {
	for name, made := range map[string]int{"it was made": 1, "it was not made": 0} {
		t.Run(name, func(t *testing.T) {
			cloud := &badCloud{loses: true, makes: made > 0, blind: true}
			inBadCloud(t, cloud, func(t *testing.T, _ *store.Store, first, other *gather.Batches, q lifecycle.Request) {
				led(t, first, q)
				_, _ = first.Await(t.Context(), q, false, time.Now()) // which fails
				for _, late := range []time.Duration{0, 89 * time.Second} {
					time.Sleep(time.Until(q.Deadline.Add(late)))
					if share, err := other.Await(t.Context(), q, false, time.Now()); err != nil || share.Done || share.Wait != 2*time.Second {
						t.Errorf("%s past the deadline: %+v, %v", late, share, err)
					}
				}
				time.Sleep(time.Second)
				cloud.blind = false
				share, err := other.Await(t.Context(), q, false, time.Now())
				if err != nil || !share.Done || len(share.Machines) != made || (share.Short != "") != (made == 0) || cloud.launches != 1 {
					t.Errorf("%d calls, and the launch has %+v, %v; want %d machines of one call", cloud.launches, share, err, made)
				}
			})
		})
	}
}

// A machine that the row of a batch names may be missing from the cloud's answers at first. Then it is gone.
func TestAMachineOfABatchIsShownLate(t *testing.T) {
	cloud := &badCloud{makes: true}
	inBadCloud(t, cloud, func(t *testing.T, _ *store.Store, first, other *gather.Batches, q lifecycle.Request) {
		led(t, first, q)
		await(t, first, q)
		made := time.Now()
		cloud.blind = true
		for _, after := range []time.Duration{0, 89 * time.Second} {
			time.Sleep(time.Until(made.Add(after)))
			if share, err := other.Await(t.Context(), q, false, time.Now()); err != nil || share.Done || share.Wait != 2*time.Second {
				t.Errorf("%s after the call: %+v, %v", after, share, err)
			}
		}
		time.Sleep(time.Second)
		share, err := other.Await(t.Context(), q, false, time.Now())
		if err != nil || len(share.Machines) != 1 || share.Machines[0].State != lifecycle.MachineGone {
			t.Errorf("90 s after the call the launch has %+v, %v; want a machine that is gone", share, err)
		}
	})
}

// The row of a batch is due once the cloud shows its machines. It stays open while a member has not closed its launch, and is kept for a day then.
func TestTheRowOfABatchIsOpenWhileItIsNeeded(t *testing.T) {
	for name, closed := range map[string]func(*lifecycle.Request){
		"the launch is closed":            func(q *lifecycle.Request) { q.Launch = nil },
		"the member makes another launch": func(q *lifecycle.Request) { order := *q.Launch; order.Batch, q.Launch = "batch-later", &order },
	} {
		t.Run(name, func(t *testing.T) {
			inBadCloud(t, &badCloud{makes: true}, func(t *testing.T, s *store.Store, first, _ *gather.Batches, q lifecycle.Request) {
				led(t, first, q)
				await(t, first, q)
				if row := rowOf(t, s, q); !row.DueAt.Equal(time.Now().Add(90 * time.Second)) {
					t.Errorf("its row is due in %s", time.Until(row.DueAt))
				}
				resume(t, s, first, q.Launch.Batch)
				if row := rowOf(t, s, q); row.Launch == nil || !row.DueAt.Equal(time.Now().Add(time.Minute)) || !row.ExpiresAt.IsZero() {
					t.Errorf("a member needs it, and its row is due in %s and expires at %s; launch %+v", time.Until(row.DueAt), row.ExpiresAt, row.Launch)
				}
				after := q
				closed(&after)
				if _, err := s.UpdateRequest(t.Context(), after); err != nil {
					t.Fatal(err)
				}
				resume(t, s, first, q.Launch.Batch)
				if row := rowOf(t, s, q); row.Launch != nil || !row.DueAt.IsZero() || !row.ExpiresAt.Equal(time.Now().Add(24*time.Hour)) {
					t.Errorf("no member needs it, and its row is due at %s and expires in %s; launch %+v", row.DueAt, time.Until(row.ExpiresAt), row.Launch)
				}
			})
		})
	}
}

// Of a batch that comes short the older request has the machine, although the younger one waited first and leads.
func TestTheOlderRequestComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(time.Now)
		cloud, err := memory.New(memory.Options{Limits: placement.Limits{Zones: []string{"a"}, Capacity: map[string]int{"*": 1}}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		b := replica(s, cloud, time.Second)
		older := request("older", 1)
		time.Sleep(time.Millisecond)
		younger := join(t, b, request("younger", 1))
		older = join(t, b, older)
		for _, q := range []lifecycle.Request{younger, older} {
			if share, err := b.Await(t.Context(), q, false, time.Now()); err != nil || share.Done {
				t.Fatalf("the launch of %s does not wait: %+v, %v", q.RequestID, share, err)
			}
		}
		got := await(t, b, younger)
		if first := await(t, b, older); len(first.Machines) != 1 || len(got.Machines) != 0 || got.Short == "" {
			t.Errorf("the older has %+v, and the younger %+v; want one machine for the older", first, got)
		}
	})
}

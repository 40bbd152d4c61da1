package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
)

// launchRate is that of package compute/ec2.
var launchRate = fleet.Rate{PerSecond: 2, Burst: 3}

// pacedCloud takes launches and their machines as fast as the EC2 adapter makes them, and answers each after a second and a half.
type pacedCloud struct {
	fleet.Compute
	turns, machines *rate.Limiter

	mu sync.Mutex
	// at are when the calls of launches were made, by token; sizes are how many machines they ordered.
	at    []time.Time
	sizes []int
}

func newPacedCloud(c fleet.Compute) *pacedCloud {
	return &pacedCloud{Compute: c, turns: rate.NewLimiter(rate.Limit(launchRate.PerSecond), launchRate.Burst), machines: rate.NewLimiter(2, 500)}
}

func (c *pacedCloud) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if err := c.machines.WaitN(ctx, order.Count); err != nil {
		return nil, err
	}
	if err := c.turns.Wait(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.at, c.sizes = append(c.at, time.Now()), append(c.sizes, order.Count)
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(1500 * time.Millisecond):
	}
	return c.Compute.Launch(ctx, order)
}

func (c *pacedCloud) calls() (calls, machines int, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.sizes {
		machines += n
	}
	return len(c.at), machines, c.at[len(c.at)-1]
}

// batchWorld has a job pool for so many jobs at once, and a cloud whose launches are paced.
func batchWorld(t *testing.T, jobs int, change ...func(*fleet.Options)) (*world, *pacedCloud) {
	w := jobWorld(t, jobs)
	cloud := newPacedCloud(w.compute)
	changes := append([]func(*fleet.Options){func(o *fleet.Options) {
		withJobs(o, w.hub, jobs)
		o.Compute, o.LaunchRate = cloud, launchRate
	}}, change...)
	w.fleet = w.newFleet("first", changes...)
	return w, cloud
}

// queueAll queues so many jobs at once.
func (w *world) queueAll(ctx context.Context, jobs int, takes time.Duration) {
	for id := range int64(jobs) {
		w.hub.queue(ctx, poolJob(id+1, time.Now()), takes)
	}
}

// Five hundred jobs that are queued at once have asked for their hosts within 20 s, at two calls a second.
func TestABurstOfJobsIsFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 500
		w, cloud := batchWorld(t, jobs)
		w.mute = true
		began := time.Now()
		w.live(t, func(ctx context.Context) {
			w.queueAll(ctx, jobs, time.Second)
			w.until("all hosts launched", 10*time.Minute, func() bool { return len(w.records()) >= jobs })
		})
		calls, machines, last := cloud.calls()
		t.Logf("%d calls for %d machines, the last after %s", calls, machines, last.Sub(began))
		if took := last.Sub(began); took > 20*time.Second || calls > 20 || machines != jobs {
			t.Errorf("%d calls for %d machines, the last after %s; want at most 20 calls for %d machines within 20s", calls, machines, took, jobs)
		}
		if len(w.records()) != jobs || w.machines() != jobs {
			t.Errorf("%d records and %d machines, want %d of each", len(w.records()), w.machines(), jobs)
		}
	})
}

// A job that comes alone does not wait for others.
func TestALoneJobIsNotGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cloud := batchWorld(t, 10)
		w.mute = true // and no host is used again
		w.live(t, func(ctx context.Context) {
			for id := range int64(3) {
				began := time.Now()
				w.hub.queue(ctx, poolJob(id+1, began), time.Second)
				w.until("the job's host is asked for", time.Minute, func() bool {
					cloud.mu.Lock()
					defer cloud.mu.Unlock()
					return len(cloud.at) > int(id)
				})
				if took := cloud.at[id].Sub(began); took > 100*time.Millisecond {
					t.Errorf("the host of job %d was asked for after %s", id+1, took)
				}
				time.Sleep(2 * time.Second)
			}
		})
		if rows := w.batches(); len(rows) > 0 {
			t.Errorf("batches of lone jobs: %v", rows)
		}
	})
}

// batches are the rows of the batches of the job pool.
func (w *world) batches() []lifecycle.Request {
	w.t.Helper()
	return w.batchesOf(jobPool)
}

func (w *world) batchesOf(pool string) []lifecycle.Request {
	w.t.Helper()
	rows, err := w.store.RequestsOfRun(context.Background(), batch.Repository, batch.Run(pool))
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// All jobs of a burst run once, and nothing is left of their batches.
func TestJobsOfABatchRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 40
		w, _ := batchWorld(t, jobs)
		w.live(t, func(ctx context.Context) {
			w.queueAll(ctx, jobs, 3*time.Second)
			w.until("all jobs over", 10*time.Minute, w.allOver)
			w.until("the pool at rest", 20*time.Minute, w.atRest)
			if len(w.hub.given) != jobs {
				t.Errorf("%d jobs ran, want %d", len(w.hub.given), jobs)
			}
			w.until("the batches are closed", 10*time.Minute, func() bool { return !slices.ContainsFunc(w.batches(), unclosed) })
			if len(w.batches()) == 0 {
				t.Error("no launch was gathered")
			}
		})
	})
}

func unclosed(q lifecycle.Request) bool { return q.Launch != nil || !q.DueAt.IsZero() || !q.Settled() }

// Of a batch that comes short the oldest jobs have the machines, and the rest go on trying.
func TestABatchComesShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, room = 20, 11
		w, _ := batchWorld(t, jobs)
		small, err := memory.New(memory.Options{Now: time.Now, Limits: placement.Limits{Capacity: map[string]int{"*": room}}})
		if err != nil {
			t.Fatal(err)
		}
		w.compute = small
		cloud := newPacedCloud(small)
		w.fleet = w.newFleet("first", func(o *fleet.Options) {
			withJobs(o, w.hub, jobs)
			o.Compute, o.LaunchRate = cloud, launchRate
		})
		w.mute = true
		w.live(t, func(ctx context.Context) {
			for id := range int64(jobs) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), time.Second)
				time.Sleep(time.Millisecond) // the older of two jobs has the older request
			}
			w.until("the machines that there are", time.Minute, func() bool { return len(w.records()) == room })
			time.Sleep(5 * time.Second)
			for _, r := range w.records() {
				if n := w.slotOf(r); n > room {
					t.Errorf("%s serves slot %d, and only %d machines came", r.InstanceID, n, room)
				}
			}
			w.mu.Lock()
			w.mute = false
			w.mu.Unlock()
			w.until("all jobs over", 30*time.Minute, w.allOver)
		})
	})
}

// slotOf is the number of the slot that a host serves.
func (w *world) slotOf(r lifecycle.Record) int {
	for _, t := range w.turns().Open {
		if t.RunID(jobPool) == r.RequestID {
			return int(t.Number)
		}
	}
	return 0
}

// What EC2 refuses of one pool does not touch the others of a burst, and nothing is left of it.
type refusingCloud struct {
	fleet.Compute
	class string
}

func (c refusingCloud) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if order.ResourceClass == c.class {
		return nil, errors.Join(lifecycle.ErrRefused, errors.New("InvalidParameterValue"))
	}
	return c.Compute.Launch(ctx, order)
}

func TestARefusedBatchTouchesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cloud := newPacedCloud(w.compute)
		w.fleet = w.newFleet("first", func(o *fleet.Options) {
			o.Compute, o.LaunchRate = refusingCloud{cloud, "xlarge"}, fleet.Rate{PerSecond: 0.5, Burst: 1}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		errs := make([]error, 8)
		var wait sync.WaitGroup
		for i := range errs {
			d := demand(string(rune('a'+i)), "r", 1)
			if i%2 == 1 {
				d.Spec.ResourceClass = "xlarge"
			}
			wait.Go(func() { _, errs[i] = w.provision(ctx, d) })
		}
		wait.Wait()
		for i, err := range errs {
			if refused := i%2 == 1; refused != errors.Is(err, lifecycle.ErrRefused) {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
}

// refusingSpot is a cloud that refuses all spot launches for a fault of the configuration, and makes others.
type refusingSpot struct{ fleet.Compute }

func (c refusingSpot) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if order.UsageClass == lifecycle.UsageSpot {
		return nil, fmt.Errorf("ec2:CreateFleet: %w: InvalidParameterValue: no such instance profile", lifecycle.ErrRefused)
	}
	return c.Compute.Launch(ctx, order)
}

// dyingAfterBatch is the store of a replica that dies once it has written what came of a batch.
type dyingAfterBatch struct {
	fleet.Store
	die func()
}

func (s dyingAfterBatch) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	stored, err := s.Store.UpdateRequest(ctx, q)
	if err == nil && q.Kind == lifecycle.RequestBatch {
		s.die()
		return q, ctx.Err()
	}
	return stored, err
}

// A request whose batch was refused is refused too, with the reason, if another process finds that in the row of the batch. It
// is no shortage: a spot request does not fall back to on-demand for a fault that an operator has to mend.
func TestTheRefusalOfABatchReachesAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cloud := refusingSpot{w.compute}
		ctx, die := context.WithCancel(t.Context())
		defer die()
		w.fleet = w.newFleet("first", gathering, func(o *fleet.Options) { o.Store, o.Compute = dyingAfterBatch{o.Store, die}, cloud })
		var demands []fleet.Demand
		for _, run := range []string{"alone", "b", "c"} {
			d := demand(run, "r", 1)
			d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, true
			demands = append(demands, d)
		}
		var wait sync.WaitGroup
		for _, d := range demands {
			wait.Go(func() { _, _ = w.provision(ctx, d) })
			time.Sleep(time.Millisecond)
		}
		wait.Wait()
		if ctx.Err() == nil {
			t.Fatal("no launch was gathered")
		}
		w.fleet = w.newFleet("second", gathering, func(o *fleet.Options) { o.Compute = cloud })
		for _, d := range demands[1:] {
			_, err := w.provision(t.Context(), d)
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "no such instance profile") {
				t.Errorf("run %s: got error %v, want the refusal of its batch", d.RunID, err)
			}
			q, err := w.store.Request(t.Context(), d.Repository, d.RunID, d.RequestID)
			if err != nil || q.OnDemand || q.Shortage != "" || q.Launches != 1 {
				t.Errorf("run %s: on demand %t, shortage %q, %d launches, error %v; want neither, and one launch", d.RunID, q.OnDemand, q.Shortage, q.Launches, err)
			}
		}
	})
}

// burst is how many jobs the crash tests queue at once.
const burst = 4

// gathering lets one launch go alone, so that the others of a burst are gathered.
func gathering(o *fleet.Options) { o.LaunchRate = fleet.Rate{PerSecond: 1, Burst: 1} }

// bounded gives the job pool a maximum, whose account has an entry for each launch.
func bounded(o *fleet.Options) {
	gathering(o)
	p := o.Pools[jobPool]
	p.Maximum = new(burst)
	o.Pools[jobPool] = p
}

// Whatever effect a replica dies after while it launches a batch, another one goes on: each job has one host, and no
// machine is left over.
func TestACrashWhileABatchIsLaunched(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashOf(t, at, burst, (*world).runBurst, gathering) })
}

func TestALostAnswerWhileABatchIsLaunched(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return loseAnswerOf(t, at, burst, (*world).runBurst, gathering) })
}

// The same in a pool with a maximum.
func TestACrashWhileABatchIsLaunchedWithinAMaximum(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashOf(t, at, burst, (*world).runBurst, bounded) })
}

// runBurst has jobs run that are queued at once, and checks that each machine has an owner as long as it lives.
func (w *world) runBurst(ctx context.Context) {
	w.t.Helper()
	w.queueAll(ctx, burst, 3*time.Second)
	w.until("all jobs over", 30*time.Minute, func() bool {
		w.checkMaximum(burst)
		return w.allOver()
	})
	if given := slices.Sorted(slices.Values(w.hub.given)); !slices.Equal(given, []int64{1, 2, 3, 4}) {
		w.t.Errorf("jobs that ran: %v", given)
	}
	w.until("the pool at rest", 30*time.Minute, w.atRest)
	w.until("the batches are closed", 10*time.Minute, func() bool { return !slices.ContainsFunc(w.batches(), unclosed) })
	w.until("no machine is left", 30*time.Minute, func() bool { return w.machines() == 0 })
	if made := len(w.records()); made > burst { // the hosts of the first jobs are not reused: all are queued at once
		w.t.Errorf("%d machines were made for %d jobs", made, burst)
	}
}

// A release takes a launch out of its batch. The call is not made for it, although its caller's operation asks again.
func TestAReleaseBeforeTheCallOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cloud := newPacedCloud(w.compute)
		w.fleet = w.newFleet("first", func(o *fleet.Options) { o.Compute, o.LaunchRate = cloud, fleet.Rate{PerSecond: 0.5, Burst: 1} })
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		defer callers.Wait()
		defer cancel()
		for _, run := range []string{"alone", "gathered"} {
			callers.Go(func() { w.provisionQuietly(ctx, demand(run, "r", 1)) })
			time.Sleep(100 * time.Millisecond)
		}
		w.release(ctx, "gathered", false)
		time.Sleep(time.Minute)
		if calls, machines, _ := cloud.calls(); calls != 1 || machines != 1 {
			t.Errorf("%d machines in %d calls, want the one of the request that goes alone", machines, calls)
		}
		if rows := w.batchesOf("default"); len(rows) > 0 {
			t.Errorf("batches %+v, want none", rows)
		}
	})
}

// takenToken is a cloud in which the token of the first batch stands for another order already: the rows of an earlier batch of that id,
// and of its member, were lost.
type takenToken struct {
	fleet.Compute
	once sync.Once
}

func (c *takenToken) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if strings.HasPrefix(order.RequestID, "batch-") {
		c.once.Do(func() {
			earlier := order
			earlier.Count = 1
			if _, err := c.Compute.Launch(ctx, earlier); err != nil {
				panic(err)
			}
		})
	}
	return c.Compute.Launch(ctx, order)
}

// What an earlier batch of the same id launched is taken, and no job is left without a host for it.
func TestABatchWhoseIDWasUsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 12
		w, cloud := batchWorld(t, jobs+5, func(o *fleet.Options) { o.Compute = &takenToken{Compute: o.Compute} })
		w.live(t, func(ctx context.Context) {
			w.queueAll(ctx, jobs, time.Second)
			w.until("all jobs over", 10*time.Minute, w.allOver)
		})
		if _, machines, _ := cloud.calls(); machines < jobs {
			t.Errorf("%d machines ordered, want at least %d", machines, jobs)
		}
	})
}

package cost_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	hosttime "github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// keeping is what it uses to know what hosts were used for, and what that cost.
type keeping struct {
	// run is a warm claim of one host and its release, hooked the same with one job on the host and all webhooks of both, and pooled a job
	// of a job pool.
	run, hooked, pooled pair
	// calls is a write of the row with the calls of a replica.
	calls cost.Usage
	// written is the write of the sums of a day.
	written cost.Usage
	// days is a sweep that sums up days, afresh a read of what is spent since the month began, and budgets one that goes on from it.
	days, afresh, budgets grown
}

// pair is the same in a fleet that keeps all, and in one that keeps nothing.
type pair struct{ with, without cost.Usage }

// adds is what keeping adds.
func (p pair) adds() cost.Usage { return p.with.Plus(p.without.Times(-1)) }

// grown is what something uses in a fleet without hosts and history, and what is added by each cycle of a host that is read, and by each live host.
type grown struct{ none, cycle, host cost.Usage }

// of is what it uses with so many of each.
func (g grown) of(cycles, hosts float64) cost.Usage {
	return g.none.Plus(g.cycle.Times(cycles)).Plus(g.host.Times(hosts))
}

// unkept is the store of a fleet that does not keep what its hosts are used for.
type unkept struct{ *dynamo.Store }

func (unkept) CreateReading(context.Context, hosttime.Reading) error { return nil }

func (unkept) CreateJobTime(context.Context, hosttime.JobTime) error { return nil }

func (s unkept) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	r.Meter = ""
	return s.Store.CreateInstance(ctx, r)
}

func (s unkept) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	r.Meter = ""
	return s.Store.UpdateInstance(ctx, r)
}

// keepNothing has a fleet keep nothing.
func (w *world) keepNothing(o *fleet.Options) { o.Store = unkept{w.store} }

func keepAll(*fleet.Options) {}

// both measures with keeping and without it.
func both(t *testing.T, measure func(t *testing.T, keep func(*world) func(*fleet.Options)) cost.Usage) (p pair) {
	t.Run("with", func(t *testing.T) {
		p.with = measure(t, func(*world) func(*fleet.Options) { return keepAll })
	})
	t.Run("without", func(t *testing.T) {
		p.without = measure(t, func(w *world) func(*fleet.Options) { return w.keepNothing })
	})
	return p
}

// measureRun is a warm claim of one host and its release.
func measureRun(t *testing.T) pair {
	return both(t, func(t *testing.T, keep func(*world) func(*fleet.Options)) (used cost.Usage) {
		w := newWorld(t)
		w.fleet = w.newFleet(w.compute, keep(w))
		w.provision("1", 1, 0, time.Time{})
		w.clock.set(w.clock.now().Add(time.Second))
		w.fillPool(0, 1)
		for _, run := range []string{"4712001", "4712002"} { // the second finds a host that a run of this fleet had
			used = w.meter.of(func() {
				w.provision(run, 1, 1, time.Time{})
				w.release(run, 1)
			})
		}
		return used
	})
}

// measurePooledJob is a job of a job pool on a pooled host.
func measurePooledJob(t *testing.T) pair {
	return both(t, func(t *testing.T, keep func(*world) func(*fleet.Options)) cost.Usage {
		return together(measureJob(t, 0, keep))
	})
}

// measureWebhooks is a warm claim of one host, what webhooks say of a job on it, and the end of its run, which releases it.
func measureWebhooks(t *testing.T) pair {
	return both(t, func(t *testing.T, keep func(*world) func(*fleet.Options)) (used cost.Usage) {
		w := newWorld(t, func(w *world) { w.bubbles = true })
		h := newHub(w.clock)
		w.fleet = w.newFleet(w.compute, w.withJobPools(h, 1, poolMaximum), keep(w))
		synctest.Test(t, func(t *testing.T) {
			w.t, w.clock.runs = t, true
			time.Sleep(time.Until(began))
			w.fillPool(0, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go w.fleet.ServeJobs(ctx)
			synctest.Wait()
			for n := range 2 { // the first finds a process that has not been at work
				used = w.meter.of(func() { w.runWithWebhooks(h, n) })
			}
			cancel()
			synctest.Wait()
		})
		return used
	})
}

// runWithWebhooks is the life of a run with one host and one job.
func (w *world) runWithWebhooks(h *hub, n int) {
	w.t.Helper()
	run := fmt.Sprintf("1587203412%d", n)
	w.provision(run, 1, 1, time.Time{})
	job := lifecycle.WorkflowJob{
		ID: firstJob + int64(n), Repository: repository, RunID: run, RunAttempt: 1, Name: "build", Workflow: "CI", QueuedAt: w.clock.now(),
		Labels: []string{run, "remuda-large"},
	}
	var heard []told
	for _, job.Status = range []string{lifecycle.StatusQueued, lifecycle.StatusInProgress, lifecycle.StatusCompleted} {
		switch job.Status {
		case lifecycle.StatusInProgress:
			job.RunnerName, job.StartedAt = w.host().RunnerName, w.clock.now()
		case lifecycle.StatusCompleted:
			time.Sleep(jobTime)
			job.CompletedAt = w.clock.now()
		}
		said := job
		hook := lifecycle.Webhook{DeliveryID: fmt.Sprintf("0b989ba4-242f-11e5-81e1-c7b6966d%d%s", n, job.Status[:2]), Action: job.Status, RepositoryID: 7, OwnerID: 8, Job: &said}
		w.hear(h, job.Status, &heard, func() error { return w.fleet.TakeWebhook(w.t.Context(), hook, w.clock.now()) })
	}
	over := lifecycle.Webhook{DeliveryID: "0b989ba4-242f-11e5-81e1-c7b6966d2over" + run, Action: lifecycle.StatusCompleted, RepositoryID: 7, OwnerID: 8, Run: &lifecycle.WorkflowRun{
		RunID: run, RunAttempt: 1, Repository: repository, RepositoryID: 7, Status: lifecycle.StatusCompleted,
	}}
	w.hear(h, "over", &heard, func() error { return w.fleet.TakeWebhook(w.t.Context(), over, w.clock.now()) })
	if r := w.host(); !r.Pooled() {
		w.t.Errorf("the host of run %s is %s", run, r.Condition())
	}
	if got, err := w.plain.Job(w.t.Context(), job.ID); err != nil || got.State != lifecycle.JobDone {
		w.t.Errorf("job %d is %q: %v", job.ID, got.State, err)
	}
}

// someCycles and someHosts are how many of them the growth of reads is measured with.
const someCycles, someHosts, someRepositories = 1000, 100, 100

// measureSpending is what it uses to sum up days and to know what is spent. The cycles are of the day before.
func measureSpending(t *testing.T) (written cost.Usage, days, afresh, budgets grown) {
	w := newWorld(t)
	kept := func(o *fleet.Options) {
		o.Prices, o.Guards, o.Budgets = &price.List{}, w.store, budget.List{{Repository: repository, Dollars: 1e6}}
	}
	step := func(day, first, next *cost.Usage) {
		f := w.newFleet(w.compute, kept) // a new process
		*day, *first = w.sweep(f.NewDaySweep()), w.sweep(f.NewBudgetSweep())
		w.pass(10 * time.Minute)
		*next = w.sweep(f.NewBudgetSweep())
	}
	step(&days.none, &afresh.none, &budgets.none)
	w.keepCycles(someCycles)
	written = w.sweep(w.newFleet(w.compute, kept).NewDaySweep())
	var day, first, next cost.Usage
	step(&day, &first, &next)
	written = written.Plus(day.Times(-1))
	days.cycle, afresh.cycle = perOne(day, days.none, someCycles), perOne(first, afresh.none, someCycles)
	budgets.cycle = afresh.cycle // those that it reads again are of the last minutes, and it read none
	var records []lifecycle.Record
	for n := range someHosts {
		records = append(records, w.pooled(instanceID(n)))
	}
	w.create(records...)
	before := next
	step(&day, &first, &next)
	budgets.host = perOne(next, before, someHosts)
	afresh.host = budgets.host
	return written, days, afresh, budgets
}

// perOne is what each of some adds.
func perOne(with, without cost.Usage, n float64) cost.Usage {
	return with.Plus(without.Times(-1)).Times(1 / n)
}

// keepCycles writes so many cycles of hosts, which ended on the day before.
func (w *world) keepCycles(n int) {
	w.t.Helper()
	w.written(n, func(ctx context.Context, s *dynamo.Store, n int) error {
		at := began.Add(-24*time.Hour + time.Duration(n)*time.Second)
		r := w.pooled(instanceID(n % someHosts))
		c := hosttime.Cycle{From: hosttime.At(at), PooledAt: hosttime.At(at.Add(3 * time.Second))}
		c = c.Claimed(at.Add(5*time.Minute), hosttime.User{Repository: fmt.Sprintf("acme/site-%d", n%someRepositories), Workflow: "CI", RunID: fmt.Sprint(15872034116 + n), Attempt: 1})
		c.ReadyAt, c.ReleasedAt, c.EndedAt = c.ClaimedAt+2000, c.ClaimedAt+600_000, c.ClaimedAt+600_000
		return s.CreateReading(ctx, hosttime.NewReading(r.HostKey, r.Metered(), c))
	})
}

// measureKept is all of it.
func measureKept(t *testing.T) (k keeping) {
	for name, measure := range map[string]func(*testing.T){
		"calls":    func(t *testing.T) { k.calls = measureKeeping(t) },
		"run":      func(t *testing.T) { k.run = measureRun(t) },
		"webhooks": func(t *testing.T) { k.hooked = measureWebhooks(t) },
		"job pool": func(t *testing.T) { k.pooled = measurePooledJob(t) },
		"spending": func(t *testing.T) { k.written, k.days, k.afresh, k.budgets = measureSpending(t) },
	} {
		t.Run(name, measure)
	}
	return k
}

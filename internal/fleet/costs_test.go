package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// priced gives the fleet prices: a dollar an hour of everything on-demand.
func priced(o *fleet.Options) {
	o.Prices = &price.List{Own: []price.Price{{InstanceType: "*", UsageClass: lifecycle.UsageOnDemand, Dollars: 1}}}
}

func (w *world) costs(ctx context.Context, q fleet.CostQuery) fleet.CostReport {
	w.t.Helper()
	report, err := w.fleet.Costs(ctx, q, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// machineTime is how long machines lived, by the cloud's own word.
func (w *world) machineTime(ids []string) (sum time.Duration) {
	w.t.Helper()
	shown, err := w.compute.Describe(context.Background(), ids)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range shown {
		end := m.EndedAt
		if end.IsZero() {
			end = time.Now()
		}
		sum += end.Sub(m.LaunchedAt)
	}
	return sum
}

// recordedIDs are the machines of all hosts.
func (w *world) recordedIDs() (ids []string) {
	for _, r := range w.allRecords() {
		ids = append(ids, r.InstanceID)
	}
	return ids
}

// monthsRun is a run of the month, with who asks for it and for how long it works.
func monthsRun(r *rand.Rand, n int) (d fleet.Demand, works time.Duration) {
	repositories := []string{"acme/shop", "acme/site", "other/tool"}
	d = demandOf(repositories[r.IntN(3)], fmt.Sprint(1000+n), 1+r.IntN(3), 1, 10*time.Minute)
	d.Workflow = []string{"CI", "nightly"}[r.IntN(2)]
	return d, time.Duration(1+r.IntN(90)) * time.Minute
}

// TestCostOfAMonth: over a simulated month of shared hosts, the sums by whatever are the lifetimes of the machines, to the second.
func TestCostOfAMonth(t *testing.T) {
	racepass.CoveredBy(t, "TestCostOfARun")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, priced, takingWebhooks, func(o *fleet.Options) {
			o.Timing = fleet.Timing{Due: time.Minute, Liveness: 10 * time.Minute, Cloud: 6 * time.Hour, Lease: time.Hour}
			for name, p := range o.Pools {
				p.Policy.Silence, p.Policy.IdleTime = 30*time.Minute, 3*time.Hour
				p.Policy.ForgetAfter = 60 * 24 * time.Hour // no record is lost to the test
				o.Pools[name] = p
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer time.Sleep(time.Minute)
		defer cancel()
		go w.fleet.Sweep(ctx)
		r := rand.New(rand.NewPCG(16, 5))
		began, runs, jobs := time.Now(), 0, jobsOfRuns{}
		for end := began.AddDate(0, 0, 30); time.Now().Before(end); runs++ {
			d, works := monthsRun(r, runs)
			until := time.Now().Add(time.Duration(r.Int64N(int64(8 * time.Hour))))
			w.month(ctx, d, works, func(host lifecycle.Record, until time.Time) {
				w.workedOn(ctx, r, host, until.Add(-works), until, jobs)
			})
			w.answered(ctx, until)
		}
		w.wantLifetimes(ctx, began, w.recordedIDs())
		t.Logf("%d runs", runs)
		query := fleet.CostQuery{Since: meter.DayOf(began), Until: meter.DayOf(time.Now())}
		w.wantJobs(ctx, query, jobs)
		days, err := w.store.DaysOfMonth(ctx, meter.MonthOf(query.Since))
		if err != nil || len(days) < 20 {
			t.Errorf("%d days of the month are summed up: %v", len(days), err)
		}
	})
}

// wantLifetimes: the sums since a time, by whatever, are the lifetimes of the machines by the cloud's own word, to the second.
func (w *world) wantLifetimes(ctx context.Context, since time.Time, ids []string) {
	w.t.Helper()
	lived, machines := w.machineTime(ids), len(ids)
	query := fleet.CostQuery{Since: meter.DayOf(since), Until: meter.DayOf(time.Now())}
	var first fleet.CostReport
	for i, by := range []fleet.CostBy{fleet.CostByPool, fleet.CostByRepository, fleet.CostByOwner, fleet.CostByWorkflow, fleet.CostByRun, fleet.CostByJob, fleet.CostByDay, fleet.CostByInstanceType} {
		query.By = by
		report := w.costs(ctx, query)
		var rows meter.Times
		for _, row := range report.Rows {
			rows = rows.Plus(row.Times)
		}
		if rows != report.Total.Times {
			w.t.Errorf("by %s: the rows sum to %+v, the total is %+v", by, rows, report.Total.Times)
		}
		if i == 0 {
			first = report
			w.t.Logf("%d machines lived for %s: %+v", machines, lived, first.Total.Times)
		} else if diff := cmp.Diff(first.Total.Times, report.Total.Times); diff != "" || report.Total.Runs != first.Total.Runs {
			w.t.Errorf("by %s there are other sums than by pool:\n%s", by, diff)
		}
	}
	if diff := first.Total.Sum() - lived; diff.Abs() > time.Second || machines < 50 {
		w.t.Errorf("%d machines lived for %s, and the report has %s", machines, lived, first.Total.Sum())
	}
}

// month drives one run. It calls each with the hosts that have worked for it.
func (w *world) month(ctx context.Context, d fleet.Demand, works time.Duration, each func(host lifecycle.Record, until time.Time)) {
	w.t.Helper()
	w.during(ctx, func() {
		if _, err := w.provision(ctx, d); err != nil {
			w.t.Fatal(err)
		}
	})
	w.answered(ctx, time.Now().Add(works))
	for _, host := range w.serving(d.RunID) {
		each(host, time.Now())
	}
	w.during(ctx, func() {
		if err := w.fleet.Drive(ctx, w.fleet.NewRelease(d.Repository, d.RunID, 0, true), patience); err != nil {
			w.t.Fatal(err)
		}
	})
}

// takingWebhooks has the fleet take webhooks about the jobs of its runs, which a sweep works on.
func takingWebhooks(o *fleet.Options) { withJobs(o, newHub(o.GitHub.(*fakeGitHub)), 1) }

// jobsOfRuns are how long the jobs of each run took, by their ids.
type jobsOfRuns map[string]map[int64]time.Duration

// workedOn has up to three jobs of a run have run on a host, one after the other. A webhook says of each when it is over.
func (w *world) workedOn(ctx context.Context, r *rand.Rand, host lifecycle.Record, from, until time.Time, jobs jobsOfRuns) {
	w.t.Helper()
	if jobs[host.RunID] == nil {
		jobs[host.RunID] = map[int64]time.Duration{}
	}
	gap := until.Sub(from) / 8
	for at := from.Add(gap); r.IntN(4) > 0 && at.Add(gap).Before(until); at = at.Add(2 * gap) {
		j := runJob(int64(1+len(jobs[host.RunID]))+1000*numberOf(host.RunID), host.RunID, 1)
		j.Repository, j.Name, j.Status, j.RunnerName = host.Repository, "build", lifecycle.StatusCompleted, host.RunnerName
		j.QueuedAt, j.StartedAt, j.CompletedAt = from, at.Truncate(time.Millisecond), at.Add(gap).Truncate(time.Millisecond)
		jobs[host.RunID][j.ID] = j.CompletedAt.Sub(j.StartedAt)
		if err := w.fleet.TakeWebhook(ctx, lifecycle.Webhook{DeliveryID: fmt.Sprint("job ", j.ID), Action: j.Status, Job: &j}, time.Now()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func numberOf(run string) (n int64) {
	_, _ = fmt.Sscan(run, &n)
	return n
}

// wantJobs: of each run the jobs, and its time without one, sum up to what the run used, and each job has the time for which it ran.
func (w *world) wantJobs(ctx context.Context, q fleet.CostQuery, jobs jobsOfRuns) {
	w.t.Helper()
	runs, counted := map[string]meter.Times{}, 0
	q.By = fleet.CostByRun
	for _, row := range w.costs(ctx, q).Rows {
		runs[row.RunID] = runs[row.RunID].Plus(row.Times)
	}
	q.By = fleet.CostByJob
	for _, row := range w.costs(ctx, q).Rows {
		runs[row.RunID] = runs[row.RunID].Plus(meter.Times{Idle: -row.Idle, Boot: -row.Boot, Busy: -row.Busy, Clean: -row.Clean})
		if row.Job.ID == 0 {
			continue
		}
		if counted++; row.Busy != jobs[row.RunID][row.Job.ID] || row.Job.Title != "build" || row.Workflow == "" || row.Sum() != row.Busy {
			w.t.Errorf("job %d of run %s took %s: %+v", row.Job.ID, row.RunID, jobs[row.RunID][row.Job.ID], row)
		}
	}
	for run, rest := range runs {
		if rest != (meter.Times{}) {
			w.t.Errorf("the jobs of run %q do not sum up to what it used: %+v are missing", run, rest)
		}
	}
	all := 0
	for _, of := range jobs {
		all += len(of)
	}
	if counted != all || all < 100 {
		w.t.Errorf("%d of %d jobs are in the report", counted, all)
	}
}

// answered has the agents answer now and then until a time.
func (w *world) answered(ctx context.Context, until time.Time) {
	for ; time.Now().Before(until); time.Sleep(5 * time.Minute) {
		w.answer(ctx)
	}
}

// during has the agents answer while something is driven.
func (w *world) during(ctx context.Context, do func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.agents(ctx)
	do()
}

// A report has what a run used while it has its hosts and after, and each part of the time is charged where it belongs.
func TestCostOfARun(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", priced)
		d := demand("101", "a", 2)
		d.Workflow = "CI"
		w.mustProvision(ctx, d)
		time.Sleep(10 * time.Minute)
		now := w.costs(ctx, fleet.CostQuery{By: fleet.CostByRun})
		if len(now.Rows) != 1 || now.Rows[0].RunID != "101" || now.Rows[0].Workflow != "CI" || now.Rows[0].Runs != 0 || now.Rows[0].Busy < 19*time.Minute {
			t.Errorf("while it runs: %+v", now.Rows)
		}
		w.release(ctx, "101", true)
		time.Sleep(3 * time.Minute)
		after := w.costs(ctx, fleet.CostQuery{By: fleet.CostByRun})
		if len(after.Rows) != 2 || after.Rows[0].Runs != 2 || after.Rows[0].Idle+after.Rows[0].Clean != 0 || after.Rows[1].RunID != "" || after.Rows[1].Idle < 5*time.Minute {
			t.Errorf("after its release: %+v", after.Rows)
		}
		of := w.costs(ctx, fleet.CostQuery{By: fleet.CostByPool, RunID: "101"})
		if len(of.Rows) != 1 || of.Total.Times != after.Rows[0].Times || of.Total.Dollars != after.Rows[0].Dollars {
			t.Errorf("of the run alone: %+v", of)
		}
		if got := w.costs(ctx, fleet.CostQuery{Repository: "ACME", Pool: "default"}); got.Total.Times != after.Rows[0].Times {
			t.Errorf("of its owner: %+v", got.Total)
		}
		if got := w.costs(ctx, fleet.CostQuery{Repository: "other"}); len(got.Rows) != 0 {
			t.Errorf("of another owner: %+v", got.Rows)
		}
		hours := after.Total.Sum().Hours()
		if diff := after.Total.Dollars - hours; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%g hours cost $%g", hours, after.Total.Dollars)
		}
	})
}

// The one job of a host of a job pool has all that its run used of the host, and a job whose end is not known yet has nothing.
func TestCostOfJobsOfAPool(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Minute)
		w.until("it runs", time.Minute, w.ran(1))
		reader := w.newFleet("b", priced, func(o *fleet.Options) { withJobs(o, w.hub, 4) })
		report := func(by fleet.CostBy) fleet.CostReport {
			got, err := reader.Costs(ctx, fleet.CostQuery{By: by, Repository: repository}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := report(fleet.CostByJob); len(got.Rows) != 1 || got.Rows[0].Job.ID != 0 {
			t.Errorf("while it runs: %+v", got.Rows)
		}
		w.until("a webhook has said what its host runs", time.Minute, func() bool { return w.turns().Open[0].Runs == 1 })
		if got := report(fleet.CostByRun); len(got.Rows) != 1 || got.Rows[0].RunID != "1" || got.Rows[0].Attempt != 1 {
			t.Errorf("by run, while it runs: %+v", got.Rows)
		}
		w.hub.queue(ctx, poolJob(2, time.Now()), 2*time.Minute)
		w.until("both are over", 10*time.Minute, w.allOver)
		w.until("the pool is at rest", time.Minute, w.atRest)
		got := report(fleet.CostByJob)
		if len(got.Rows) != 2 {
			t.Fatalf("%+v", got.Rows)
		}
		for i, want := range []meter.Job{{ID: 2, Title: "build"}, {ID: 1, Title: "build"}} {
			row, ran := got.Rows[i], time.Duration(want.ID)*time.Minute
			// A job may begin before its host says that it is ready, and until then the host boots.
			if row.Job != want || row.RunID != "1" || row.Runs != 1 || row.Boot == 0 || row.Boot+row.Busy < ran || row.Busy < ran-time.Second {
				t.Errorf("of job %d: %+v", want.ID, row)
			}
		}
		if of := report(fleet.CostByRun); of.Total.Times != got.Total.Times || of.Total.Runs != got.Total.Runs {
			t.Errorf("by run %+v, by job %+v", of.Total, got.Total)
		}
	})
}

// A host whose agent reported the end of its job before GitHub did is released by then, and is charged to the run of the job anyway.
func TestCostOfAJobWhoseHostIsReleasedFirst(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		releasing := func() bool {
			return slices.ContainsFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool { return r.Releasing() })
		}
		early := false
		var hear func(context.Context, lifecycle.Webhook) error
		hear = w.hub.hearBy(func(ctx context.Context, d lifecycle.Webhook) error {
			for range 5 * 60 * 20 {
				if d.Action != lifecycle.StatusCompleted || releasing() {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			early = early || d.Action == lifecycle.StatusCompleted && releasing()
			return hear(ctx, d)
		})
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Minute)
		w.until("it is over", 10*time.Minute, w.allOver)
		w.until("the pool is at rest", time.Minute, w.atRest)
		got, err := w.newFleet("b", priced).Costs(ctx, fleet.CostQuery{By: fleet.CostByRun, Repository: repository}, time.Now())
		if err != nil || !early || len(got.Rows) != 1 || got.Rows[0].RunID != "1" || got.Rows[0].Busy < time.Minute {
			t.Errorf("released first: %t; %+v, %v", early, got.Rows, err)
		}
	})
}

// While the store does not answer, the end of a job waits for its time to be kept. If it refuses the row, the job goes on without.
func TestCostOfAJobThatCannotBeKept(t *testing.T) {
	for _, tt := range []struct {
		err  error
		over bool
	}{{lifecycle.ErrRefused, true}, {lifecycle.ErrUnavailable, false}} {
		synctest.Test(t, func(t *testing.T) {
			w := jobWorld(t, 1)
			w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Store = refusing{w.store, tt.err} }, func(o *fleet.Options) { withJobs(o, w.hub, 1) })
			w.live(t, func(ctx context.Context) {
				j := runJob(9, "5", 1)
				j.Repository, j.Status, j.RunnerName, j.StartedAt, j.CompletedAt = repository, lifecycle.StatusCompleted, lifecycle.RunnerName(1, "i-1"), time.Now().Add(-time.Minute), time.Now()
				if err := w.fleet.TakeWebhook(ctx, lifecycle.Webhook{DeliveryID: "9", Action: j.Status, Job: &j}, time.Now()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				got, err := w.store.Job(ctx, 9)
				if over := err == nil && got.State == lifecycle.JobDone; over != tt.over {
					t.Errorf("%v: over %v (%v), want %v", tt.err, over, err, tt.over)
				}
			})
		})
	}
}

// A job that runs on after its run was released is charged to the run, while it does and after, even if nothing saw its end before
// the host was clean.
func TestCostOfAJobAfterTheRelease(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", priced)
		host := w.mustProvision(ctx, demand("101", "a", 1))[0]
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Minute)
		w.release(ctx, "101", false)
		for _, busy := range []bool{true, false} {
			time.Sleep(time.Hour)
			w.set(func() { w.busy[host.HostKey] = busy })
			time.Sleep(time.Minute)
			got := w.costs(ctx, fleet.CostQuery{By: fleet.CostByRun, RunID: "101"})
			if len(got.Rows) != 1 || got.Total.Busy < time.Hour || !busy && (got.Total.Busy < 2*time.Hour || got.Total.Runs != 1) {
				t.Errorf("busy %v, the host is %s: %+v", busy, w.record(host.HostKey).Condition(), got.Rows)
			}
		}
		lived := w.machineTime(w.recordedIDs())
		if got := w.costs(ctx, fleet.CostQuery{}).Total.Sum(); (got - lived).Abs() > time.Millisecond {
			t.Errorf("the machine lives for %s, and the report has %s", lived, got)
		}
	})
}

// A machine that ended before its record did, or after it, is charged for until it ended.
func TestCostUntilTheMachineEnded(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", priced)
		host := w.mustProvision(ctx, demand("101", "a", 1))[0]
		time.Sleep(10 * time.Minute)
		w.compute.Kill(host.InstanceID)
		time.Sleep(30 * time.Minute)
		lived := w.machineTime(w.recordedIDs())
		if got := w.costs(ctx, fleet.CostQuery{}).Total.Sum(); (got-lived).Abs() > time.Millisecond || lived > 11*time.Minute {
			t.Errorf("the machine lived for %s, and the report has %s", lived, got)
		}
	})
}

// A day is asked for as it was summed up, and the report names types that have no price.
func TestCostOfOldDays(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Prices = &price.List{} })
		old := meter.DayOf(time.Now().AddDate(0, 0, -100))
		user := meter.User{Repository: repository, Workflow: "CI"}
		_, err := w.store.UpdateDay(ctx, meter.Day{Month: meter.MonthOf(old), Day: old, Entries: []meter.Entry{
			{Day: old, Host: meter.Host{Pool: "default", InstanceType: "odd.large"}, User: user, Runs: 3, Times: meter.Times{Busy: time.Hour}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		got := w.costs(ctx, fleet.CostQuery{By: fleet.CostByWorkflow, Since: old})
		want := fleet.CostRow{Entry: meter.Entry{User: user, Runs: 3, Times: meter.Times{Busy: time.Hour}}, Unpriced: time.Hour}
		if diff := cmp.Diff([]fleet.CostRow{want}, got.Rows); diff != "" || len(got.Unpriced) != 1 || got.Unpriced[0] != "odd.large" {
			t.Errorf("%v (-want +got):\n%s", got.Unpriced, diff)
		}
		if _, err := w.fleet.Costs(ctx, fleet.CostQuery{Since: old, By: fleet.CostByJob}, time.Now()); err == nil || !strings.Contains(err.Error(), "single jobs are kept for 31 days") {
			t.Errorf("the jobs of an old day: %v", err)
		}
		for field, q := range map[string]fleet.CostQuery{
			"since": {Since: old, By: fleet.CostByRun}, "until": {Until: "2026-13-01"}, "by": {By: "price"},
		} {
			var bad *fleet.InvalidError
			if _, err := w.fleet.Costs(ctx, q, time.Now()); !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("%+v: %v, want something wrong with %s", q, err, field)
			}
		}
		if _, err := w.newFleet("c").Costs(ctx, fleet.CostQuery{}, time.Now()); !errors.Is(err, fleet.ErrNoPrices) {
			t.Errorf("without prices: %v", err)
		}
	})
}

// Two replicas may see the end of the last job at different times. What one has written stands, and the next cycle begins there.
func TestCostWrittenByAnotherReplica(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("101", "a", 1))[0]
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Minute)
		w.release(ctx, "101", false)
		r := w.record(host.HostKey)
		c, ended := r.Meter.Ended(r.ReleasedAt.Add(30 * time.Minute))
		if !ended {
			t.Fatalf("its cycle is %q", r.Meter)
		}
		if err := w.store.CreateReading(ctx, meter.NewReading(r.HostKey, r.Metered(), c)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		w.set(func() { w.busy[host.HostKey] = false })
		time.Sleep(time.Minute)
		r = w.record(host.HostKey)
		if next, ok := r.Meter.Cycle(); !r.Pooled() || !ok || next.From != c.EndedAt || next.PooledAt != meter.At(r.PooledAt) {
			t.Errorf("it is %s, and its next cycle %q begins at %s, not at %s", r.Condition(), r.Meter, next.From.Time(), c.EndedAt.Time())
		}
	})
}

// refusing is a store that refuses readings, or does not answer.
type refusing struct {
	*store.Store
	err error
}

func (s refusing) CreateReading(context.Context, meter.Reading) error { return s.err }

func (s refusing) CreateJobTime(context.Context, meter.JobTime) error { return s.err }

// While the store does not answer a host waits for its account to be written. If it refuses the row, the host goes on without.
func TestCostThatCannotBeKept(t *testing.T) {
	for _, tt := range []struct {
		err    error
		pooled bool
	}{{lifecycle.ErrRefused, true}, {lifecycle.ErrUnavailable, false}} {
		inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
			host := w.mustProvision(ctx, demand("101", "a", 1))[0]
			w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Store = refusing{w.store, tt.err} })
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			err := w.fleet.Drive(ctx, w.fleet.NewRelease(repository, "101", 0, true), patience)
			if got := w.record(host.HostKey).Pooled(); got != tt.pooled || (err == nil) != tt.pooled {
				t.Errorf("%v: pooled %v (%v), want %v", tt.err, got, err, tt.pooled)
			}
		})
	}
}

// A report of too many rows is refused and not half an answer.
func TestCostOfTooManyRows(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", priced)
		old := meter.DayOf(time.Now().AddDate(0, 0, -10))
		var entries []meter.Entry
		for n := range 100_001 {
			entries = append(entries, meter.Entry{Day: old, User: meter.User{Repository: fmt.Sprint("acme/", n)}, Times: meter.Times{Busy: time.Hour}})
		}
		if _, err := w.store.UpdateDay(ctx, meter.Day{Month: meter.MonthOf(old), Day: old, Entries: entries}); err != nil {
			t.Fatal(err)
		}
		var bad *fleet.InvalidError
		if _, err := w.fleet.Costs(ctx, fleet.CostQuery{}, time.Now()); !errors.As(err, &bad) || bad.Field != "by" {
			t.Errorf("%v", err)
		}
		if got := w.costs(ctx, fleet.CostQuery{By: fleet.CostByOwner}); len(got.Rows) != 1 || got.Total.Busy != 100_001*time.Hour {
			t.Errorf("by owner: %d rows, %s", len(got.Rows), got.Total.Busy)
		}
	})
}

// racedDays is a store into which another replica writes the sums of each day first, or that refuses them.
type racedDays struct {
	fleet.Store
	refuses error
}

func (s racedDays) UpdateDay(ctx context.Context, d meter.Day) (meter.Day, error) {
	if s.refuses != nil {
		return d, s.refuses
	}
	if _, err := s.Store.UpdateDay(ctx, d); err != nil {
		return d, err
	}
	return s.Store.UpdateDay(ctx, d)
}

// Another replica may sum up a day at the same time: the sums are the same, and the sweep goes on with the next day. Sums that are not stored fail it.
func TestCostOfDaysThatAreSummedUpTwice(t *testing.T) {
	refused := errors.New("the table is full")
	for name, refuses := range map[string]error{"by another replica": nil, "not at all": refused} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, priced, func(o *fleet.Options) { o.Store = racedDays{o.Store, refuses} })
				var days []string
				for _, run := range []string{"1", "2"} {
					w.spend(t.Context(), repository, run, 1)
					days = append(days, meter.DayOf(time.Now()))
					time.Sleep(24 * time.Hour)
				}
				time.Sleep(24 * time.Hour)
				if err := w.fleet.Drive(t.Context(), w.fleet.NewDaySweep(), patience); !errors.Is(err, refuses) {
					t.Errorf("it ended with %v, want %v", err, refuses)
				}
				for _, day := range days {
					if d, err := w.store.Day(t.Context(), day); err != nil || (len(d.Entries) == 1) != (refuses == nil) {
						t.Errorf("%s has %+v (%v)", day, d.Entries, err)
					}
				}
			})
		})
	}
}

// A day is summed up from 36 hours after its begin on.
func TestADayIsSummedUpOnceItRested(t *testing.T) {
	for name, tt := range map[string]struct {
		after  time.Duration
		summed bool
	}{"just before": {costs.DayRests - time.Nanosecond, false}, "just then": {costs.DayRests, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, priced)
				day := time.Now().UTC().Truncate(24 * time.Hour)
				w.spend(t.Context(), repository, "1", 1)
				time.Sleep(time.Until(day.Add(tt.after)))
				w.sweepOnce(t.Context(), w.fleet.NewDaySweep())
				if d, err := w.store.Day(t.Context(), meter.DayOf(day)); err != nil || (len(d.Entries) > 0) != tt.summed {
					t.Errorf("it has %+v (%v), to be summed up: %t", d.Entries, err, tt.summed)
				}
			})
		})
	}
}

// The readings of a day that was never summed up are in a report for as long as its first ones are kept.
func TestCostOfTheOldestDayOfReadings(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		has   bool
	}{"just then": {meter.KeepReadings, true}, "just after": {meter.KeepReadings + time.Nanosecond, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, priced)
				day := time.Now().UTC().Truncate(24 * time.Hour)
				time.Sleep(time.Hour)
				w.spend(t.Context(), repository, "1", 1)
				time.Sleep(time.Until(day.Add(tt.after)))
				report := w.costs(t.Context(), fleet.CostQuery{Since: meter.DayOf(day), Until: meter.DayOf(day)})
				if got := report.Total.Sum() > 0; got != tt.has {
					t.Errorf("the report has %s of the day", report.Total.Sum())
				}
			})
		})
	}
}

// An instance type without a price is named once, however many rows it is in.
func TestATypeWithoutAPriceIsNamedOnce(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Prices = &price.List{} })
		old := meter.DayOf(time.Now().AddDate(0, 0, -10))
		var entries []meter.Entry
		for _, of := range []string{"acme/a odd.large", "acme/b big.large", "acme/c odd.large"} {
			name, kind, _ := strings.Cut(of, " ")
			entries = append(entries, meter.Entry{Day: old, Host: meter.Host{InstanceType: kind}, User: meter.User{Repository: name}, Times: meter.Times{Busy: time.Hour}})
		}
		if _, err := w.store.UpdateDay(ctx, meter.Day{Month: meter.MonthOf(old), Day: old, Entries: entries}); err != nil {
			t.Fatal(err)
		}
		if got := w.costs(ctx, fleet.CostQuery{By: fleet.CostByRepository, Since: old}); !slices.Equal(got.Unpriced, []string{"big.large", "odd.large"}) {
			t.Errorf("without a price: %q", got.Unpriced)
		}
	})
}

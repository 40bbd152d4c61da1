package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// unreadable is a store whose readings may not be had.
type unreadable struct {
	*store.Store
	mu     sync.Mutex
	err    error
	listed int
	// rows are the readings that were read.
	rows int
}

func (s *unreadable) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// ListInstances counts the pages of hosts.
func (s *unreadable) ListInstances(ctx context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	s.mu.Lock()
	s.listed++
	s.mu.Unlock()
	return s.Store.ListInstances(ctx, f, page)
}

func (s *unreadable) ReadingsSince(ctx context.Context, at time.Time) ([]meter.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	readings, err := s.Store.ReadingsSince(ctx, at)
	s.rows += len(readings)
	return readings, err
}

// budgeted gives the repository of the tests ten dollars a month. A warning is due at eight.
func budgeted(o *fleet.Options) {
	priced(o)
	o.Budgets = budget.List{{Owner: "other", Dollars: 100}, {Repository: repository, Dollars: 10, WarnPercent: 80}}
}

// spend has a repository use a host for some hours of today, at a dollar each.
func (w *world) spend(ctx context.Context, repository, run string, hours int) {
	w.t.Helper()
	now := meter.At(time.Now())
	ended := now + meter.Milli(hours)*60*60*1000
	c := meter.Cycle{From: now, Launched: true, ClaimedAt: now, ReadyAt: now, ReleasedAt: ended, EndedAt: ended, User: meter.User{Repository: repository, RunID: run}}
	r := meter.NewReading("spent-by-"+run, meter.Host{Pool: "default", InstanceType: "c6i.large", UsageClass: "on-demand"}, c)
	if err := w.store.CreateReading(ctx, r); err != nil {
		w.t.Fatal(err)
	}
}

const usedUpWords = "limits.budgets allows repository acme/app $10.00 in 2000-01, and $"

// A run of a repository whose budget is used up gets no host at once, neither warm nor cold. A run that has begun goes on, others are
// served, and in the next month all are.
func TestABudgetThatIsUsedUp(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		begun := w.mustProvision(ctx, demand("1", "a", 1))
		w.mustProvision(ctx, demand("2", "a", 1))
		w.release(ctx, "2", true)
		w.spend(ctx, repository, "9", 10)
		if _, err := w.provision(ctx, demand("3", "a", 1)); err != nil {
			t.Errorf("what was spent a moment ago is known: %v", err)
		}
		w.release(ctx, "3", true)
		time.Sleep(11 * time.Minute)
		before := w.machines()
		_, err := w.provision(ctx, demand("4", "a", 2))
		var short *fleet.ShortError
		if !errors.As(err, &short) || !strings.Contains(err.Error(), usedUpWords) || !strings.Contains(err.Error(), "from 2000-02-01 on") {
			t.Errorf("over its budget: %v", err)
		}
		if w.machines() != before || len(w.records(lifecycle.StateIdle)) != 1 {
			t.Error("a host was given out or launched")
		}
		e, err := w.fleet.Explain(ctx, repository, "4", time.Now())
		if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, "and got none: "+usedUpWords) {
			t.Errorf("%v: %s", err, said)
		}
		if n := w.told(lifecycle.ReasonBudgetUsedUp); n != 1 {
			t.Errorf("the history has it %d times", n)
		}
		if r := w.record(begun[0].HostKey); r.State != lifecycle.StateRunning {
			t.Errorf("the host of the run that had begun is %s", r.Condition())
		}
		if _, err := w.provision(ctx, demandOf("acme/site", "5", 1, 1, time.Minute)); err != nil {
			t.Errorf("another repository: %v", err)
		}
		other := w.newFleet("other", budgeted)
		p, err := other.NewProvision(demand("6", "a", 1))
		if err == nil {
			err = other.Drive(ctx, p, patience)
		}
		if !errors.As(err, &short) {
			t.Errorf("at a replica that has just started: %v", err)
		}
	})
}

// What a host has spent counts while its machine ends, for a replica that has looked lately, for one that has not, and for one that has just started. So a
// budget that is used up stays so. It counts once when the machine is gone, whether that takes a moment or half an hour.
func TestABudgetWhileTheLastHostEnds(t *testing.T) {
	for name, ends := range map[string]int{"in a moment": 0, "in half an hour": 3} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
				look := func(name string, f *fleet.Fleet, least, most float64) {
					t.Helper()
					uses, _, err := f.Budgets(ctx, time.Now())
					if err != nil || uses[1].Spent < least || uses[1].Spent > most {
						t.Errorf("%s: %+v (%v), want %g to %g dollars", name, uses[1], err, least, most)
					}
				}
				w.spend(ctx, repository, "9", 9)
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				seldom := w.newFleet("seldom", budgeted)
				look("at first", seldom, 9, 9.01)
				for range 7 {
					time.Sleep(10 * time.Minute)
					look("while it runs", w.fleet, 9.1, 10.2)
				}
				if _, err := w.fleet.Terminate(ctx, host.InstanceID, "the test", time.Now()); err != nil {
					t.Fatal(err)
				}
				look("one that has not looked lately", seldom, 10.16, 10.17)
				look("one that has just started", w.newFleet("new", budgeted), 10.16, 10.17)
				for range ends {
					time.Sleep(10 * time.Minute)
					look("one that has looked lately", w.fleet, 10.16, 10.17)
				}
				for range 3 {
					w.sweepOnce(ctx, w.fleet.NewDueSweep())
					time.Sleep(10 * time.Minute)
					look("once it is gone", w.fleet, 10.16, 10.17)
				}
				time.Sleep(25 * time.Hour)
				look("on the next day", w.fleet, 10.16, 10.17)
			})
		})
	}
}

// A request that has one of its two hosts goes on looking for the other, when the budget is used up in between.
func TestABudgetAndARequestThatHasBegun(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		d := demandOf(repository, "1", 2, 2, 30*time.Minute)
		d.Spec.UsageClass = lifecycle.UsageSpot // there is one such machine
		asked := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, d)
			asked <- err
		}()
		time.Sleep(time.Minute)
		w.spend(ctx, repository, "9", 10)
		time.Sleep(15 * time.Minute)
		if n := len(w.serving("1")); n != 1 {
			t.Errorf("it has %d hosts", n)
		}
		if err := <-asked; err == nil || strings.Contains(err.Error(), "limits.budgets") || !strings.Contains(err.Error(), "1 of 2 hosts were ready within 30m0s") {
			t.Errorf("it ended with %v", err)
		}
	})
}

// A new month begins with nothing spent, however short a while ago the budgets were read.
func TestABudgetInTheNextMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, budgeted)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		time.Sleep(time.Until(time.Date(2000, 1, 31, 1, 0, 0, 0, time.UTC)))
		w.spend(ctx, repository, "9", 12)
		time.Sleep(time.Until(time.Date(2000, 1, 31, 23, 59, 0, 0, time.UTC)))
		go w.agents(ctx)
		if _, err := w.provision(ctx, demand("1", "a", 1)); err == nil {
			t.Error("on the last day of January there is a host")
		}
		time.Sleep(time.Minute)
		if _, err := w.provision(ctx, demand("2", "a", 1)); err != nil {
			t.Errorf("on the first of February: %v", err)
		}
	})
}

// A spot host that EC2 takes back is replaced, though the budget is used up by then: the run has begun.
func TestABudgetAndAReplacement(t *testing.T) {
	noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
		w.fleet = w.newFleet("b", budgeted, func(o *fleet.Options) { o.Notices = a })
		go w.fleet.Sweep(ctx)
		h := w.mustProvision(ctx, replaced("1", 1))[0]
		w.spend(ctx, repository, "9", 10)
		time.Sleep(11 * time.Minute)
		w.set(func() {
			w.forge[h.HostKey] = func(p *lifecycle.Report) { p.InterruptionAt = time.Now().Add(2 * time.Minute) }
		})
		time.Sleep(10 * time.Minute)
		all := w.replacements("1")
		if len(all) != 1 || all[0].Outcome != lifecycle.OutcomeReady {
			t.Errorf("the replacements are %+v", all)
		}
	})
}

// Every replica may sweep: the history has each news of a budget once in the month, and again when the budget was changed.
func TestABudgetIsReportedOnce(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		sweep := func(change ...func(*fleet.Options)) {
			f := w.newFleet("b", change...)
			if err := f.Drive(ctx, f.NewBudgetSweep(), patience); err != nil {
				t.Fatal(err)
			}
		}
		want := func(near, usedUp int) {
			t.Helper()
			if n, u := w.told(lifecycle.ReasonBudgetNear), w.told(lifecycle.ReasonBudgetUsedUp); n != near || u != usedUp {
				t.Errorf("%d times near its end and %d times used up, want %d and %d", n, u, near, usedUp)
			}
			if page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 100}); err != nil || len(page.Items) != near+usedUp {
				t.Errorf("%v: %+v", err, page.Items)
			}
		}
		w.spend(ctx, repository, "8", 7)
		sweep(budgeted)
		want(0, 0)
		w.spend(ctx, repository, "9", 1)
		sweep(budgeted)
		sweep(budgeted)
		want(1, 0)
		w.spend(ctx, repository, "10", 2)
		sweep(budgeted)
		sweep(budgeted)
		want(1, 1)
		sweep(budgeted, func(o *fleet.Options) { o.Budgets[1].Dollars = 9 })
		want(1, 2)
		uses, _, err := w.fleet.Budgets(ctx, time.Now())
		if err != nil || len(uses) != 2 || uses[0].Spent != 0 || uses[1].Spent != 10 || uses[1].Month != "2000-01" {
			t.Errorf("%v: %+v", err, uses)
		}
	})
}

// The jobs of a repository whose budget is used up wait and take no slot, and say why. Those of others come first.
func TestABudgetOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, budgeted)
		w.spend(t.Context(), repository, "9", 10)
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Minute)
			other := poolJob(2, time.Now())
			other.Repository, other.RunID = "acme/site", "2"
			w.hub.queue(ctx, other, time.Minute)
			w.until("the job of the other repository runs", 2*time.Minute, w.ran(2))
			time.Sleep(5 * time.Minute)
			if w.ran(1)() {
				t.Error("a job over the budget runs")
			}
			if turns := w.turns(); len(turns.Open) != 0 || turns.Assigned != 1 {
				t.Errorf("not one slot was assigned, for the other job: %+v", turns)
			}
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			said := strings.Join(e.Sentences, "\n")
			if err != nil || !strings.Contains(said, "Why: "+usedUpWords) || !strings.Contains(said, "(budget_used_up). It gets a host from 2000-02-01 on") {
				t.Errorf("%v: %s", err, said)
			}
			w.fleet = w.newFleet("c", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, budgeted, func(o *fleet.Options) { o.Budgets[1].Dollars = 20 })
			go w.fleet.ServeJobs(ctx)
			synctest.Wait()
			w.hub.queue(ctx, poolJob(3, time.Now()), time.Minute)
			w.until("with a larger budget it runs", 5*time.Minute, w.ran(1))
		})
	})
}

// A job says since when the budget that keeps it is used up, once a replica has seen that come.
func TestSinceWhenABudgetIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, budgeted)
		w.live(t, func(ctx context.Context) {
			time.Sleep(11 * time.Minute)
			w.spend(ctx, repository, "9", 10)
			time.Sleep(15 * time.Minute)
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Minute)
			for _, later := range []time.Duration{time.Minute, 30 * time.Minute} {
				time.Sleep(later)
				waits, _, err := w.fleet.Waiting(ctx, "", 10, time.Now())
				if err != nil || len(waits) != 1 {
					t.Fatalf("%+v, %v", waits, err)
				}
				if since := waits[0].Answer.Since.Sub(waits[0].Since); since > 0 || since < -15*time.Minute {
					t.Errorf("%s later: used up since %s, and the job waits since %s", later, waits[0].Answer.Since, waits[0].Since)
				}
				if said := w.whyRun("1"); !strings.Contains(said, "(budget_used_up), since 00:") {
					t.Errorf("%s later it is not said since when:\n%s", later, said)
				}
			}
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now().Add(24*time.Hour))
			if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, "(budget_used_up), since 2000-01-01T00:") {
				t.Errorf("a day later it is not said since which day: %v\n%s", err, said)
			}
		})
	})
}

// The minimum of a job pool is not kept for a repository whose budget is used up: its hosts would be paid for, and no job be let in.
func TestABudgetOfAMinimum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minimum := func(o *fleet.JobOptions) {
			p := o.Pools[jobPool]
			p.Minimum, p.Repository, p.Scope = 1, repository, repository
			o.Pools[jobPool] = p
		}
		w := jobWorld(t, 2, minimum)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 2, minimum) }, budgeted)
		w.live(t, func(ctx context.Context) {
			w.until("a host listens", 2*time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
			w.spend(ctx, repository, "9", 10)
			w.until("it has gone back", 20*time.Minute, w.atRest)
			time.Sleep(10 * time.Minute)
			if !w.atRest() {
				t.Errorf("%+v", w.turns())
			}
		})
	})
}

// What a budget leaves is not guessed: while the store does not answer a request waits.
func TestABudgetThatCannotBeRead(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		lost := &unreadable{Store: w.store, err: lifecycle.ErrUnavailable}
		w.fleet = w.newFleet("b", budgeted, func(o *fleet.Options) { o.Store = lost })
		p, err := w.fleet.NewProvision(demand("1", "a", 1))
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan error, 1)
		go func() { asked <- w.fleet.Drive(ctx, p, time.Minute) }()
		time.Sleep(10 * time.Second)
		if w.machines() > 0 {
			t.Error("a host was launched")
		}
		lost.setErr(nil)
		if err := <-asked; err != nil {
			t.Error(err)
		}
	})
}

// However many ask at once, and with the sweep, what was spent is added up once in a while.
func TestBudgetsAreAddedUpOnce(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		counted := &unreadable{Store: w.store}
		f := w.newFleet("b", budgeted, func(o *fleet.Options) { o.Store = counted })
		asked := make(chan error, 100)
		for range cap(asked) {
			go func() {
				_, _, err := f.Budgets(ctx, time.Now())
				asked <- err
			}()
		}
		for range cap(asked) {
			if err := <-asked; err != nil {
				t.Error(err)
			}
		}
		if err := f.Drive(ctx, f.NewBudgetSweep(), patience); err != nil {
			t.Error(err)
		}
		if counted.listed != 1 {
			t.Errorf("the hosts were listed %d times", counted.listed)
		}
		time.Sleep(10 * time.Minute)
		if _, _, err := f.Budgets(ctx, time.Now()); err != nil || counted.listed != 2 {
			t.Errorf("after a while they were listed %d times: %v", counted.listed, err)
		}
	})
}

// A replica that has read what was spent reads only what is new, and the sums are those of a report. A cycle that is written long after its release
// counts within a day.
func TestBudgetsReadWhatIsNew(t *testing.T) {
	inBubbleOf(t, budgeted, func(ctx context.Context, t *testing.T, w *world) {
		counted := &unreadable{Store: w.store}
		f := w.newFleet("b", budgeted, func(o *fleet.Options) { o.Store = counted })
		want := func(what string, dollars float64, rows int) {
			t.Helper()
			before := counted.rows
			uses, _, err := f.Budgets(ctx, time.Now())
			if err != nil || uses[1].Spent != dollars || counted.rows-before != rows {
				t.Errorf("%s: %+v of %d rows (%v), want %g of %d", what, uses, counted.rows-before, err, dollars, rows)
			}
		}
		for _, run := range []string{"1", "2", "3"} {
			w.spend(ctx, repository, run, 1)
		}
		time.Sleep(8 * time.Hour)
		want("at first", 3, 3)
		time.Sleep(10 * time.Minute)
		want("when nothing is new", 3, 0)
		w.spend(ctx, repository, "4", 1)
		time.Sleep(70 * time.Minute)
		want("with a new one", 4, 1)
		time.Sleep(10 * time.Minute)
		want("which may have others beside it", 4, 1)
		time.Sleep(10 * time.Minute)
		want("and then not", 4, 0)
		late := w.lateReading(ctx, 5*time.Hour)
		time.Sleep(10 * time.Minute)
		want("without one that was written late", 4, 0)
		time.Sleep(20 * time.Hour)
		want("on the same day", 4, 0)
		time.Sleep(4 * time.Hour)
		want("after a day", 4+late, 5)
		if report, err := f.Costs(ctx, fleet.CostQuery{}, time.Now()); err != nil || report.Total.Dollars != 4+late {
			t.Errorf("the report has %g (%v)", report.Total.Dollars, err)
		}
	})
}

// lateReading writes what a host was used for, half an hour that ended a while ago, and returns what it cost.
func (w *world) lateReading(ctx context.Context, ago time.Duration) float64 {
	w.t.Helper()
	ended := meter.At(time.Now().Add(-ago))
	from := ended - meter.Milli((30 * time.Minute).Milliseconds())
	c := meter.Cycle{From: from, Launched: true, ClaimedAt: from, ReadyAt: from, ReleasedAt: ended, EndedAt: ended, User: meter.User{Repository: repository, RunID: "late"}}
	if err := w.store.CreateReading(ctx, meter.NewReading("late", meter.Host{Pool: "default", InstanceType: "c6i.large", UsageClass: "on-demand"}, c)); err != nil {
		w.t.Fatal(err)
	}
	return 0.5
}

// Any number of jobs over their budget keeps no other from a host, and in the next month they have their turn.
func TestManyJobsOverTheirBudget(t *testing.T) {
	racepass.CoveredBy(t, "TestABudgetOfJobs")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, budgeted)
		time.Sleep(time.Until(time.Date(2000, 1, 31, 13, 30, 0, 0, time.UTC)))
		w.spend(t.Context(), repository, "9", 10)
		time.Sleep(10 * time.Hour) // half an hour before the month ends
		for id := range int64(3000) {
			j := lifecycle.Job{
				ID: 1000 + id, Repository: repository, RunID: "1", Pool: jobPool, Scope: repository, Labels: []string{"remuda-small"}, State: lifecycle.JobWaiting,
				QueuedAt: time.Now(), DueAt: time.Now().Add(24 * time.Hour), Version: 1,
			}
			if err := w.store.CreateJob(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		w.live(t, func(ctx context.Context) {
			for id := range int64(3) {
				other := poolJob(1+id, time.Now())
				other.Repository, other.RunID = "acme/site", "2"
				w.hub.queue(ctx, other, time.Minute)
			}
			w.until("the jobs of the other repository run", 10*time.Minute, w.ran(1, 2, 3))
			w.until("their hosts have gone back", 10*time.Minute, w.atRest)
			before := w.turns().Assigned
			time.Sleep(time.Until(time.Date(2000, 1, 31, 23, 59, 59, 0, time.UTC)))
			if n := w.turns().Assigned; n != before {
				t.Errorf("%d slots were assigned in January, want %d", n, before)
			}
			w.until("the first of those that waited has a slot", 3*time.Minute, func() bool {
				return slices.ContainsFunc(w.turns().Open, func(s slots.Slot) bool { return s.JobID == 1000 })
			})
		})
	})
}

// stuckHosts is a store that never answers what hosts there are.
type stuckHosts struct{ fleet.Store }

func (stuckHosts) ListInstances(ctx context.Context, _ lifecycle.Filter, _ lifecycle.PageOf) (p lifecycle.Page[lifecycle.Record], err error) {
	<-ctx.Done()
	return p, context.Cause(ctx)
}

// A caller that asks how much of the budgets is used has an answer within a minute, though the store has none.
func TestBudgetsOfAStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, budgeted, func(o *fleet.Options) { o.Store = stuckHosts{o.Store} })
		began := time.Now()
		_, _, err := w.fleet.Budgets(t.Context(), began)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

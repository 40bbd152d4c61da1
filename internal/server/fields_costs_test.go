package server_test

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// prices are those of the fleet. Those of m5 are built in, and so rough in another region.
var prices = price.List{
	Own: []price.Price{{InstanceType: "c6i.*", Dollars: 64}}, Calls: []price.CallPrice{{Unit: price.QueueRequest, Dollars: 7}}, Region: "eu-west-1",
}

// spentToday is what used costs a run by these prices: a minute of boot and an hour of work.
var spentToday = 64 * (61 * time.Minute).Hours()

// budgets are those of the fleet.
var budgets = budget.List{{Repository: repository, Dollars: 100, WarnPercent: 50}, {Owner: "acme", Dollars: 1000, WarnPercent: 50}, {Owner: "acme", Dollars: 65}}

// daysAgo is a day.
func daysAgo(n int) string { return meter.DayOf(time.Now().AddDate(0, 0, -n)) }

// used is what a host was used for that was in the pool at noon on a day: one minute clean, two idle, one boot, and an hour busy.
func used(day, pool, instanceType string, by meter.User) meter.Reading {
	begin, _ := meter.ParseDay(day)
	at := func(minutes int) meter.Milli { return meter.At(begin.Add(time.Duration(12*60+minutes) * time.Minute)) }
	c := meter.Cycle{From: at(-1), PooledAt: at(0), ClaimedAt: at(2), ReadyAt: at(3), ReleasedAt: at(63), EndedAt: at(63), User: by}
	return meter.NewReading(pool+instanceType+by.Repository+by.RunID+by.Workflow, meter.Host{Pool: pool, InstanceType: instanceType, UsageClass: "spot"}, c)
}

// usedHosts are those of run 7, and others that differ from them by one thing each.
func usedHosts(f *fieldWorld) {
	run := meter.User{Repository: repository, Workflow: "CI", RunID: "7", Attempt: 2}
	nightly, other, another := run, run, run
	nightly.Workflow, other.RunID, another.Repository = "nightly", "8", "acme/other"
	for _, r := range []meter.Reading{
		used(daysAgo(5), "full", "c6i.large", run), used(daysAgo(5), "full", "odd.large", nightly), used(daysAgo(5), "default", "c6i.large", run),
		used(daysAgo(5), "full", "c6i.large", other), used(daysAgo(5), "full", "c6i.large", another),
		used(daysAgo(6), "full", "c6i.large", run), used(daysAgo(4), "full", "c6i.large", run),
	} {
		f.must(f.store.CreateReading(f.t.Context(), r))
	}
}

// usedOne is one host of m5.
func usedOne(f *fieldWorld) {
	f.must(f.store.CreateReading(f.t.Context(), used(daysAgo(5), "full", "m5.large", meter.User{Repository: repository, Workflow: "CI", RunID: "7", Attempt: 2})))
}

// usedByJob is usedOne, and a job that ran on its host for half an hour, from a quarter past twelve.
func usedByJob(f *fieldWorld) {
	usedOne(f)
	begin, _ := meter.ParseDay(daysAgo(5))
	job, _ := meter.NewJobTime(meter.JobTime{
		Job: meter.Job{ID: 41, Title: "build"}, InstanceID: "fullm5.large" + repository + "7CI", Repository: repository, RunID: "7",
	}, begin.Add(12*time.Hour+15*time.Minute), begin.Add(12*time.Hour+45*time.Minute))
	f.must(f.store.CreateJobTime(f.t.Context(), job))
}

// calledOnADay is usedOne, and what two replicas called on that day and one on the next.
func calledOnADay(f *fieldWorld) {
	usedOne(f)
	keep := func(day, replica string, calls ...meter.Calls) {
		row := meter.NewCallsOfDay(day, replica)
		row.Services = calls
		_, err := f.store.UpdateCallsOfDay(f.t.Context(), row)
		f.must(err)
	}
	keep(daysAgo(5), "a", meter.Calls{Service: "dynamodb", Requests: 1500, HalfReads: 1000, Writes: 600}, meter.Calls{Service: "ec2", Requests: 70})
	keep(daysAgo(5), "b", meter.Calls{Service: "dynamodb", Requests: 500, HalfReads: 1, Writes: 300}, meter.Calls{Service: "sqs", Requests: 1e6})
	keep(daysAgo(4), "a", meter.Calls{Service: "dynamodb", Requests: 9})
}

// agentsOfOne are the calls of the agent of usedOne: 4 minutes without a job and 60 with a run.
func agentsOfOne(day string) *remudav1.CallCost {
	return &remudav1.CallCost{
		Day: day, Caller: "agents", Service: "dynamodb", Requests: 1200 + 256, ReadUnits: 600, WriteUnits: 256, Dollars: (600*0.125 + 256*0.625) / 1e6, Estimated: true, Rough: true,
	}
}

// roughCost is what an hour of m5.large costs.
func roughCost() float64 {
	dollars, _, _ := prices.Of("m5.large", "spot")
	return dollars
}

func minutes(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * time.Minute) }

// costOf is what the runs of so many hosts used, and what the pool did if it is in the row.
func costOf(hosts int, pool bool, row *remudav1.Cost) *remudav1.Cost {
	row = proto.CloneOf(row)
	row.Hosts = int64(hosts)
	row.Boot, row.Busy, row.Idle, row.Clean = minutes(hosts), minutes(60*hosts), minutes(0), minutes(0)
	if pool {
		row.Idle, row.Clean = minutes(2*hosts), minutes(hosts)
	}
	if row.Unpriced == nil {
		row.Unpriced = minutes(0)
	}
	return row
}

// costRows have a row for each field of GetCost.
var costRows = []fieldRow{
	{
		method: "GetCost", prepare: calledOnADay, req: &remudav1.GetCostRequest{Since: daysAgo(5), Until: daysAgo(5), By: remudav1.CostBy_COST_BY_DAY},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(5), Until: daysAgo(5), Rough: true,
			Rows:  []*remudav1.Cost{costOf(1, true, &remudav1.Cost{Day: daysAgo(5), Dollars: poolCost()})},
			Total: costOf(1, true, &remudav1.Cost{Dollars: poolCost()}),
			Calls: []*remudav1.CallCost{
				{Day: daysAgo(5), Caller: "controld", Service: "dynamodb", Requests: 2000, ReadUnits: 500.5, WriteUnits: 900, Dollars: (500.5*0.125 + 900*0.625) / 1e6, Rough: true},
				{Day: daysAgo(5), Caller: "controld", Service: "ec2", Requests: 70},
				{Day: daysAgo(5), Caller: "controld", Service: "sqs", Requests: 1e6, Dollars: 7},
				agentsOfOne(daysAgo(5)),
			},
			CallDollars: (500.5*0.125+900*0.625)/1e6 + 7 + agentsOfOne("").GetDollars(),
		},
	},
	{
		method: "GetCost", prepare: usedHosts, req: &remudav1.GetCostRequest{
			Since: daysAgo(5), Until: daysAgo(5), By: remudav1.CostBy_COST_BY_WORKFLOW, Repository: repository, Pool: "full", RunId: "7", RowLimit: 1,
		},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(5), Until: daysAgo(5), MoreRows: 1, UnpricedTypes: []string{"odd.large"},
			Rows:  []*remudav1.Cost{costOf(1, false, &remudav1.Cost{Repository: repository, Workflow: "CI", Dollars: 64 * (61 * time.Minute).Hours()})},
			Total: costOf(2, false, &remudav1.Cost{Dollars: 64 * (61 * time.Minute).Hours(), Unpriced: minutes(61)}),
		},
	},
	{
		method: "GetCost", prepare: usedOne, req: &remudav1.GetCostRequest{Since: daysAgo(5), By: remudav1.CostBy_COST_BY_RUN, Repository: repository}, counted: nil,
		want: &remudav1.GetCostResponse{
			Since: daysAgo(5), Until: daysAgo(0), Rough: true,
			Rows:  []*remudav1.Cost{costOf(1, false, &remudav1.Cost{Repository: repository, Workflow: "CI", RunId: "7", RunAttempt: 2, Dollars: roughCost() * (61 * time.Minute).Hours()})},
			Total: costOf(1, false, &remudav1.Cost{Dollars: roughCost() * (61 * time.Minute).Hours()}),
		},
	},
	{
		method: "GetCost", prepare: usedByJob, req: &remudav1.GetCostRequest{Since: daysAgo(5), By: remudav1.CostBy_COST_BY_JOB, Repository: repository},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(5), Until: daysAgo(0), Rough: true,
			Rows: []*remudav1.Cost{
				{
					Repository: repository, Workflow: "CI", RunId: "7", RunAttempt: 2, Dollars: roughCost() * (31 * time.Minute).Hours(), Hosts: 1,
					Boot: minutes(1), Busy: minutes(30), Idle: minutes(0), Clean: minutes(0), Unpriced: minutes(0),
				},
				{
					Repository: repository, Workflow: "CI", RunId: "7", RunAttempt: 2, Dollars: roughCost() * (30 * time.Minute).Hours(), JobId: 41, JobName: "build",
					Boot: minutes(0), Busy: minutes(30), Idle: minutes(0), Clean: minutes(0), Unpriced: minutes(0),
				},
			},
			Total: costOf(1, false, &remudav1.Cost{Dollars: roughCost()*(31*time.Minute).Hours() + roughCost()*(30*time.Minute).Hours()}),
		},
	},
	{
		method: "ListBudgets", req: &remudav1.ListBudgetsRequest{}, prepare: func(f *fieldWorld) {
			f.must(f.store.CreateReading(f.t.Context(), used(daysAgo(0), "full", "c6i.large", meter.User{Repository: repository, RunID: "7"})))
		},
		want: &remudav1.ListBudgetsResponse{Month: daysAgo(0)[:7], ReadTime: recently, Budgets: []*remudav1.Budget{
			{Repository: repository, DollarsPerMonth: 100, DollarsSpent: spentToday, WarnPercent: 50, State: remudav1.BudgetState_BUDGET_STATE_NEAR},
			{Owner: "acme", DollarsPerMonth: 1000, DollarsSpent: spentToday, WarnPercent: 50, State: remudav1.BudgetState_BUDGET_STATE_WITHIN},
			{Owner: "acme", DollarsPerMonth: 65, DollarsSpent: spentToday, State: remudav1.BudgetState_BUDGET_STATE_USED_UP},
		}},
	},
	{
		method: "GetCost", prepare: usedOne, req: &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_INSTANCE_TYPE},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(29), Until: daysAgo(0), Rough: true,
			Rows:  []*remudav1.Cost{costOf(1, true, &remudav1.Cost{InstanceType: "m5.large", UsageClass: "spot", Dollars: poolCost()})},
			Total: costOf(1, true, &remudav1.Cost{Dollars: poolCost()}),
			Calls: []*remudav1.CallCost{agentsOfOne("")}, CallDollars: agentsOfOne("").GetDollars(),
		},
	},
	{
		method: "GetCost", prepare: usedOne, req: &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_POOL},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(29), Until: daysAgo(0), Rough: true,
			Rows:  []*remudav1.Cost{costOf(1, true, &remudav1.Cost{Pool: "full", Dollars: poolCost()})},
			Total: costOf(1, true, &remudav1.Cost{Dollars: poolCost()}),
			Calls: []*remudav1.CallCost{agentsOfOne("")}, CallDollars: agentsOfOne("").GetDollars(),
		},
	},
	{
		method: "GetCost", prepare: usedOne, req: &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_DAY},
		want: &remudav1.GetCostResponse{
			Since: daysAgo(29), Until: daysAgo(0), Rough: true,
			Rows:  []*remudav1.Cost{costOf(1, true, &remudav1.Cost{Day: daysAgo(5), Dollars: poolCost()})},
			Total: costOf(1, true, &remudav1.Cost{Dollars: poolCost()}),
			Calls: []*remudav1.CallCost{agentsOfOne(daysAgo(5))}, CallDollars: agentsOfOne("").GetDollars(),
		},
	},
}

// poolCost is that of usedOne, with the time of its pool, which is a row of its own until both are added.
func poolCost() float64 {
	return roughCost()*(3*time.Minute).Hours() + roughCost()*(61*time.Minute).Hours()
}

package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	hosttime "github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// budgetReads is how often an hour what is spent is read (sweeps.budgets), and afreshReads how often a day all of the month is read.
const (
	budgetReads = 6
	afreshReads = float64(24*time.Hour) / float64(costs.AfreshAfter)
)

const (
	daySums = float64(24*time.Hour) / float64(costs.DaysEvery) // a day
	// daysSummed is how many days a sweep sums up in the mean.
	daysSummed = float64(hosttime.Late+24*time.Hour-costs.DayRests) / float64(24*time.Hour)
	// timesWritten: the sums of a day are written once, and once more for the cycles that were late.
	timesWritten = 2
	// daysRead is how many days are read afresh in the mean: today and the day before. Others are summed up.
	daysRead = 1.5
	// hoursRead is how far back what is spent is read else.
	hoursRead = float64(costs.WrittenWithin)/float64(time.Hour) + 1.0/budgetReads
)

// kept is what keeping adds in a month to all calls.
type kept struct {
	name string
	// base is what all else uses.
	base cost.Usage
	adds []cost.Usage
}

// keptWhat is what each of them is.
var keptWhat = []string{"a row for each time that a run had a host", "a row for each job", "the sums of days", "what of budgets is spent", "the calls of a replica"}

func (k kept) dollars() (sum float64) {
	for _, u := range k.adds {
		sum += u.Dollars(prices)
	}
	return sum
}

// percent is how much more all calls cost for it.
func (k kept) percent() float64 { return 100 * k.dollars() / k.base.Dollars(prices) }

// months are the month of the page, and the same with more that is kept.
func (m measured) months() []kept {
	const hostHours = exampleHosts * monthHours
	jobs := hostHours * busyPart / jobTime.Hours()
	agents := m.hour(runningName).Times(hostHours * busyPart).Plus(m.hour(idleName).Times(hostHours * (1 - busyPart)))
	rest := agents.Plus(m.at(exampleHosts).hourly().Times(monthHours))
	hookSweeps := m.jobs.rest[0].jobs.Times(dueSweeps).Plus(m.jobs.rest[0].webhooks.Times(cloudSweeps)).Times(monthHours)
	looks := m.jobs.looks[1].Times(jobLooks * jobTime.Hours()).Plus(m.jobs.news)

	k, aDay := m.keeping, jobs/monthDays
	cycles, jobRows := k.run.adds(), k.hooked.adds().Plus(k.run.adds().Times(-1))
	days := k.days.of(daysSummed*aDay, 0).Times(daySums * monthDays).Plus(k.written.Times(timesWritten * monthDays))
	budgets := k.budgets.of(hoursRead*aDay/24, exampleHosts).Times(budgetReads * monthHours).Plus(k.afresh.of(daysRead*aDay, 0).Times(afreshReads * monthDays))
	calls := k.calls.Times(float64(keptADay) * monthDays)
	with := func(jobRows cost.Usage) []cost.Usage {
		return []cost.Usage{cycles.Times(jobs), jobRows.Times(jobs), days, budgets, calls}
	}
	return []kept{
		{"runs, as above", rest.Plus(k.run.without.Times(jobs)), with(cost.Usage{})},
		{"runs, with webhooks about their jobs", rest.Plus(hookSweeps).Plus(k.hooked.without.Times(jobs)), with(jobRows)},
		{"job pools", rest.Plus(hookSweeps).Plus(k.pooled.without.Plus(looks).Times(jobs)), with(k.pooled.adds().Plus(cycles.Times(-1)))},
	}
}

func (m measured) keepingPart(line liner) {
	k := m.keeping
	line(`
## Keeping costs

What it adds to know [what hosts were used for](cost-report.md) and what of budgets is spent. A fleet is measured with its store, and with one
that keeps none of it.

| what | when | calls | read units | write units |
|---|---|---|---|---|`)
	row := func(what, when string, u cost.Usage) {
		line("| %s | %s | %s | %s | %s |", what, when, count(u.Total()), count(u.ReadUnits), count(u.WriteUnits))
	}
	row("a row of its time", "a run gave a host back", k.run.adds())
	row("a row of its time", "webhooks say that a job of a run is over", k.hooked.adds().Plus(k.run.adds().Times(-1)))
	row("both rows", "a job of a job pool is over, and its host is clean", k.pooled.adds())
	row("sums of days, without such rows", fmt.Sprintf("every %d hours", int(costs.DaysEvery.Hours())), k.days.none)
	row("and with 1,000 rows on them", "", k.days.of(1000, 0).Plus(k.days.none.Times(-1)))
	row("the sums of a day, of 100 repositories", "once or twice", k.written)
	row("what of budgets is spent, in a fleet without hosts", "every 10 minutes", k.budgets.none)
	row("and with 1,000 hosts and no new rows", "", k.budgets.of(0, 1000).Plus(k.budgets.none.Times(-1)))
	row("all that is spent in the month, with 1,000 rows on the last two days", fmt.Sprintf("every %d hours", int(costs.AfreshAfter.Hours())), k.afresh.of(1000, 0))
	row("the calls of a replica", "every hour", k.calls)
	line(`
The month [above](#a-job-and-a-month), with a job on each host that a run has:

| dollars a month |%s|
|---|---|---|---|`, joinedNames(m.months()))
	cells := func(name string, of func(kept) string) {
		text := ""
		for _, month := range m.months() {
			text += " " + of(month) + " |"
		}
		line("| %s |%s", name, text)
	}
	cells("all calls but these", func(k kept) string { return money(k.base.Dollars(prices)) })
	for i, what := range keptWhat {
		cells(what, func(k kept) string { return money(k.adds[i].Dollars(prices)) })
	}
	cells("together", func(k kept) string { return money(k.dollars()) })
	cells("more", func(k kept) string { return fmt.Sprintf("%.2f%%", k.percent()) })
	line(`
A test fails when it is more than %d%% in one of them. Without `+"`limits.budgets`"+` none is read. A report that is asked for is not in it: it reads the rows
of two days or more, 1,000 of them in %s units.`, keptAtMost, count(k.afresh.cycle.Times(1000).ReadUnits))
}

func joinedNames(months []kept) (text string) {
	for i, k := range months {
		if i > 0 {
			text += "|"
		}
		text += " " + k.name + " "
	}
	return text
}

// keptAtMost is how many percent more all calls may cost for keeping what hosts were used for.
const keptAtMost = 1

// checkKept: in no month does keeping cost more than that.
func (m measured) checkKept(t *testing.T) {
	t.Helper()
	for _, k := range m.months() {
		if k.percent() > keptAtMost {
			t.Errorf("%s: keeping costs %.2f%% more, and %d%% are enough", k.name, k.percent(), keptAtMost)
		}
	}
	if got := m.keeping.run.adds(); got.Total() != 1 || got.WriteUnits != 1 || got.ReadUnits != 0 {
		t.Errorf("for each run of a host it takes %v", got)
	}
}

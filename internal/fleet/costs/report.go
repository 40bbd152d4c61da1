package costs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// By is what the rows of a report are.
type By string

// The kinds of rows.
const (
	ByRepository   By = "repository"
	ByOwner        By = "owner"
	ByWorkflow     By = "workflow"
	ByRun          By = "run"
	ByJob          By = "job"
	ByPool         By = "pool"
	ByDay          By = "day"
	ByInstanceType By = "instance type"
)

// kinds say what is the same in all entries of a row. The time of the pool has no user, and so a row of its own in the
// first five.
var kinds = map[By]func(meter.Entry) meter.Entry{
	ByRepository: func(e meter.Entry) meter.Entry { return meter.Entry{User: meter.User{Repository: e.Repository}} },
	ByOwner: func(e meter.Entry) meter.Entry {
		return meter.Entry{User: meter.User{Repository: lifecycle.Owner(e.Repository)}}
	},
	ByWorkflow: func(e meter.Entry) meter.Entry {
		return meter.Entry{User: meter.User{Repository: e.Repository, Workflow: e.Workflow}}
	},
	ByRun:  func(e meter.Entry) meter.Entry { return meter.Entry{User: e.User} },
	ByJob:  func(e meter.Entry) meter.Entry { return meter.Entry{User: e.User, Job: e.Job} },
	ByPool: func(e meter.Entry) meter.Entry { return meter.Entry{Host: meter.Host{Pool: e.Pool}} },
	ByDay:  func(e meter.Entry) meter.Entry { return meter.Entry{Day: e.Day} },
	ByInstanceType: func(e meter.Entry) meter.Entry {
		return meter.Entry{Host: meter.Host{InstanceType: e.InstanceType, UsageClass: e.UsageClass}}
	},
}

// Query asks for a report. Days are those of UTC, "2026-11-27".
type Query struct {
	By By
	// Since and Until are the first and the last day.
	Since, Until string
	// Repository is "owner/name", or "owner" for all of that owner's. With it the time of the pool is left out. Pool and
	// RunID narrow further; empty: all.
	Repository, Pool, RunID string
}

// detailed reports whether the sums of days do not answer the query, since they have no runs.
func (q Query) detailed() bool { return q.By == ByRun || q.By == ByJob || q.RunID != "" }

// asksForUser reports whether what a run of a repository used is in the report.
func (q Query) asksForUser(repository, runID string) bool {
	return (q.RunID == "" || runID == q.RunID) && (q.Repository == "" || repository == q.Repository || lifecycle.Owner(repository) == q.Repository)
}

func (q Query) asksFor(e meter.Entry) bool {
	return e.Day >= q.Since && e.Day <= q.Until && (q.Pool == "" || e.Pool == q.Pool) && q.asksForUser(e.Repository, e.RunID)
}

// Row is what some hosts were used for, and what that cost.
type Row struct {
	// Entry has what all of it has in common; its Day, Host and User are empty where it is not the same.
	meter.Entry
	Dollars float64
	// Unpriced is the part of the time that has no price, and is not in Dollars.
	Unpriced time.Duration
}

func (r *Row) add(o Row) {
	r.Runs += o.Runs
	r.Times = r.Times.Plus(o.Times)
	r.Dollars += o.Dollars
	r.Unpriced += o.Unpriced
}

// Report is the answer. Rows are in the order of what they cost, the most first; days are in their own order.
type Report struct {
	// Since and Until are the first and the last day.
	Since, Until string

	Rows  []Row
	Total Row
	// Unpriced are the instance types without a price. Rough: some prices are those of on-demand capacity, or of another
	// region, and not what is paid.
	Unpriced []string
	Rough    bool

	// Calls are what controld and the agents called of AWS, and CallDollars what that cost. It is not in Total.
	Calls       []CallRow
	CallDollars float64
}

// oldest is how many days back a query may begin, and oldestRun one that asks for runs or jobs.
const (
	oldest    = int(meter.KeepDays / (24 * time.Hour))
	oldestRun = int(meter.KeepReadings/(24*time.Hour)) - 1
)

// fill has defaults filled in, and returns what is wrong.
func (q Query) fill(now time.Time) (Query, error) {
	today := meter.DayOf(now)
	q.Repository = lifecycle.Canonical(q.Repository)
	if q.By == "" {
		q.By = ByRepository
	}
	if q.Until == "" {
		q.Until = today
	}
	if q.Since == "" {
		q.Since = meter.DayOf(now.AddDate(0, 0, -29))
	}
	since, err := meter.ParseDay(q.Since)
	if err != nil {
		return q, &hosts.InvalidError{Field: "since", Rule: err.Error()}
	}
	if _, err := meter.ParseDay(q.Until); err != nil {
		return q, &hosts.InvalidError{Field: "until", Rule: err.Error()}
	}
	most, what := oldest, "sums are"
	switch {
	case q.By == ByJob:
		most, what = oldestRun, "single jobs are"
	case q.detailed():
		most, what = oldestRun, "single runs are"
	}
	switch {
	case kinds[q.By] == nil:
		return q, &hosts.InvalidError{Field: "by", Rule: fmt.Sprintf("%q is none of the kinds of rows", q.By)}
	case q.Since > q.Until:
		return q, &hosts.InvalidError{Field: "since", Rule: "is after until"}
	case now.Sub(since) > time.Duration(most)*24*time.Hour:
		return q, &hosts.InvalidError{Field: "since", Rule: fmt.Sprintf("%s kept for %d days", what, most)}
	}
	return q, nil
}

// Report says what the hosts of the fleet were used for and what that cost, those that live now included. It reads the
// records of all live hosts and of those whose machines are about to be gone, and the sums of each day, or the readings of it.
func (c *Costs) Report(ctx context.Context, q Query, now time.Time) (Report, error) {
	q, err := q.fill(now)
	if err != nil {
		return Report{}, err
	}
	b := &builder{q: q, prices: c.Prices, sums: meter.Sums{}, days: map[string]meter.Times{}}
	if err := c.read(ctx, b, now); err != nil {
		return Report{}, fmt.Errorf("report costs: %w", err)
	}
	report := b.report()
	if err := c.addCalls(ctx, b, &report); err != nil {
		return Report{}, fmt.Errorf("report costs: %w", err)
	}
	return report, nil
}

// builder adds up entries as they are read: those of a whole month would be too many to keep.
type builder struct {
	q      Query
	prices price.List
	// sums are by what the rows of the report are, and by what has a price.
	sums meter.Sums
	// jobs are those that the entries are split by, in a report by job.
	jobs meter.JobTimes
	// days are the times of all hosts, by day.
	days map[string]meter.Times
	// unwritten are the cycles of runs that were added and that no reading has; nil: they are not kept.
	unwritten map[cycleKey]unwritten
}

// unwritten is a cycle that a record had at a time.
type unwritten struct {
	cycle meter.Cycle
	host  meter.Host
	at    time.Time
}

// addUnwritten adds a cycle as it was in a record.
func (b *builder) addUnwritten(key cycleKey, u unwritten) error {
	if b.unwritten != nil && u.cycle.Repository != "" {
		b.unwritten[key] = u
	}
	return b.addCycle(u.cycle, key.hostKey, u.cycle.Entries(u.host, u.at))
}

// addCycle adds a part of the life of a host.
func (b *builder) addCycle(c meter.Cycle, hostKey string, entries []meter.Entry) error {
	return b.add(b.jobs.Split(c, hostKey, entries))
}

func (b *builder) asks() Query { return b.q }

func (b *builder) addDay(sums []meter.Entry) error { return b.add(sums) }

func (b *builder) addReading(r meter.Reading, c meter.Cycle) error {
	return b.addCycle(c, r.HostKey, r.Entries())
}

// mostSums bounds what a report keeps while it reads, some 30 MB.
const mostSums = 100_000

// tooMany refuses a report of more rows than that.
var tooMany = &hosts.InvalidError{Field: "by", Rule: fmt.Sprintf("there are more than %d such rows: ask for fewer days, or for one repository or pool", mostSums)}

// add takes the entries that the query asks for.
func (b *builder) add(entries []meter.Entry) error {
	for _, e := range entries {
		if !b.q.asksFor(e) {
			continue
		}
		b.days[e.Day] = b.days[e.Day].Plus(e.Times)
		kind := kinds[b.q.By](e)
		kind.InstanceType, kind.UsageClass = e.InstanceType, e.UsageClass
		if b.sums.Add(kind, e); len(b.sums) > mostSums {
			return tooMany
		}
	}
	return nil
}

// report puts prices to the sums, in their order: the last digits of a sum of dollars depend on it.
func (b *builder) report() Report {
	report := Report{Since: b.q.Since, Until: b.q.Until}
	rows := map[meter.Entry]*Row{}
	for _, e := range b.sums.Sorted() {
		part := Row{Entry: e}
		dollars, rough, ok := b.prices.Of(e.InstanceType, e.UsageClass)
		if ok {
			part.Dollars = dollars * e.Sum().Hours()
			report.Rough = report.Rough || rough
		} else {
			part.Unpriced = e.Sum()
			report.Unpriced = append(report.Unpriced, e.InstanceType)
		}
		kind := kinds[b.q.By](e)
		if rows[kind] == nil {
			rows[kind] = &Row{Entry: kind}
		}
		rows[kind].add(part)
		report.Total.add(part)
	}
	for _, row := range rows {
		report.Rows = append(report.Rows, *row)
	}
	slices.SortFunc(report.Rows, b.q.compare)
	slices.Sort(report.Unpriced)
	report.Unpriced = slices.Compact(report.Unpriced)
	return report
}

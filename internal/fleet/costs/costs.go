// Package costs sums up what hosts were used for, day by day, and answers what that cost.
package costs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Costs reads the readings of hosts. Its fields are set before the first call. It is safe for concurrent use.
type Costs struct {
	Store  ports.Store
	Prices price.List
	Ops    *op.Driver
	// Running finds the jobs that hosts run, by host key; nil: none is known.
	Running func(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Job, error)
	// Calls: the calls to AWS are kept, and so are in reports.
	Calls bool
}

const (
	// DaysEvery is how often the last days are summed up. Each time reads all of their readings, and reports read those of a day
	// that is not summed up.
	DaysEvery = 24 * time.Hour
	// DayRests is how long after its begin a day is first summed up. Reports ask for the sums no earlier than after oldDay, when its
	// readings are written except for those of the longest jobs.
	DayRests = 36 * time.Hour
	oldDay   = 48 * time.Hour
)

// DaySweep sums up the last days, one in each step.
type DaySweep struct {
	op.Stages
	env *Costs
	// days are left to be summed up; nil: it has not begun.
	days []string
}

// NewDaySweep begins a sweep.
func (c *Costs) NewDaySweep() *DaySweep {
	s := &DaySweep{env: c, Stages: c.Ops.Stages("days")}
	s.Next = s.begin
	return s
}

func (s *DaySweep) begin(_ context.Context, now time.Time) (op.Progress, error) {
	for day := now.Add(-meter.Late).UTC().Truncate(24 * time.Hour); now.Sub(day) >= DayRests; day = day.AddDate(0, 0, 1) {
		s.days = append(s.days, meter.DayOf(day))
	}
	return s.Then(s.sum)
}

// sum writes the sums of a day, unless they are what is written. What another replica writes at the same time is the same.
func (s *DaySweep) sum(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.days) == 0 {
		return op.Done, nil
	}
	day := s.days[0]
	readings, err := s.env.Store.ReadingsOfDay(ctx, day)
	if err != nil {
		return op.Again, fmt.Errorf("read what hosts were used for on %s: %w", day, err)
	}
	written, err := s.env.Store.Day(ctx, day)
	if err != nil {
		return op.Again, fmt.Errorf("read the sums of %s: %w", day, err)
	}
	sums := meter.SumUp(day, readings)
	if sums.Version = written.Version; !slices.Equal(sums.Entries, written.Entries) {
		if _, err := s.env.Store.UpdateDay(ctx, sums); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
			return op.Again, fmt.Errorf("write the sums of %s: %w", day, err)
		}
		s.Events.Effects++
	}
	s.days = s.days[1:]
	return op.Again, nil
}

// cycleKey names a cycle of a host: it begins but once.
type cycleKey struct {
	hostKey string
	from    meter.Milli
}

// read adds the entries of the cycles that ended since the first day of the query, and of those that no reading has yet. Records are read before
// readings, and those of live hosts first: what changes in between is in both, and counts once.
func (c *Costs) read(ctx context.Context, b *builder, now time.Time) error {
	if err := c.readJobs(ctx, b, now); err != nil {
		return err
	}
	seen := map[cycleKey]bool{}
	for _, list := range []lister{c.live(b.q.Pool), c.ending(now)} {
		if err := c.readRecords(ctx, b, list, seen, now); err != nil {
			return err
		}
	}
	begin, err := meter.ParseDay(b.q.Since)
	if err != nil {
		return err
	}
	return c.readDays(ctx, b, seen, begin, now)
}

// lister lists a page of records.
type lister func(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)

// live lists the hosts that have not ended, of a pool or of all.
func (c *Costs) live(pool string) lister {
	return func(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return c.Store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates, Pool: pool}, page)
	}
}

// endingWithin is within what time the due sweep looks again at a host that has ended, until its machine is gone: at most a minute, and some for
// clocks that are apart.
const endingWithin = 2 * time.Minute

// ending lists the hosts that have ended and whose machines may not be gone. They have no reading before that.
func (c *Costs) ending(now time.Time) lister {
	return func(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		due, err := c.Store.DueInstances(ctx, now.Add(endingWithin), page)
		due.Items = slices.DeleteFunc(due.Items, func(r lifecycle.Record) bool { return r.State != lifecycle.StateTerminated })
		return due, err
	}
}

// readRecords adds the entries of the cycles that the records of a listing have, except those that are seen, which they are then.
func (c *Costs) readRecords(ctx context.Context, b *builder, list lister, seen map[cycleKey]bool, now time.Time) error {
	for page := (lifecycle.PageOf{Limit: maxPage}); ; {
		got, err := list(ctx, page)
		if err != nil {
			return err
		}
		jobs, err := c.jobsOfPools(ctx, got.Items, now)
		if err != nil {
			return err
		}
		for _, r := range got.Items {
			for _, cycle := range r.Cycles() {
				key := cycleKey{r.HostKey, cycle.From}
				if seen[key] {
					continue
				}
				seen[key] = true
				if j, ok := jobs[r.HostKey]; ok && cycle.Repository != "" && cycle.RunID == "" {
					cycle.User = meter.User{Repository: j.Repository, Workflow: j.Workflow, RunID: j.RunID, Attempt: j.RunAttempt}
				}
				if err := b.addUnwritten(key, unwritten{cycle, r.Metered(), now}); err != nil {
					return err
				}
			}
		}
		if page.After = got.Next; page.After == "" {
			return nil
		}
	}
}

// jobsOfPools finds the jobs of hosts of job pools. Their records name the run only once the job is over.
func (c *Costs) jobsOfPools(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Job, error) {
	of := slices.DeleteFunc(slices.Clone(records), func(r lifecycle.Record) bool { return r.JobsOf == "" || r.RunID == "" })
	if c.Running == nil || len(of) == 0 {
		return nil, nil
	}
	return c.Running(ctx, of, now)
}

// maxPage is how many records are read at once.
const maxPage = 1000

// readJobs finds the jobs that have time in a report by job: those that ended on its first day or later.
func (c *Costs) readJobs(ctx context.Context, b *builder, now time.Time) error {
	if b.q.By != ByJob {
		return nil
	}
	begin, err := meter.ParseDay(b.q.Since)
	if err != nil {
		return err
	}
	b.jobs = meter.JobTimes{}
	n := 0
	for at := begin; meter.DayOf(at) <= meter.DayOf(now); at = at.AddDate(0, 0, 1) {
		times, err := c.Store.JobTimesOfDay(ctx, meter.DayOf(at))
		if err != nil {
			return err
		}
		for _, t := range times {
			if !b.q.asksForUser(t.Repository, t.RunID) {
				continue
			}
			if n++; n > mostSums {
				return tooMany
			}
			b.jobs.Add(t)
		}
	}
	return nil
}

// ended takes what is read of cycles that have ended.
type ended interface {
	// asks is what is to be read.
	asks() Query
	addDay(sums []meter.Entry) error
	addReading(r meter.Reading, c meter.Cycle) error
}

// readDays adds the entries of the cycles that ended at a time or later, except those that are seen. A cycle may have ended after the last
// day of the query, and have time on it.
func (c *Costs) readDays(ctx context.Context, to ended, seen map[cycleKey]bool, from, now time.Time) error {
	sums := map[string]meter.Day{}
	month, today := "", meter.DayOf(now)
	for at := from; meter.DayOf(at) <= today; at = at.Truncate(24*time.Hour).AddDate(0, 0, 1) {
		day := meter.DayOf(at)
		old := now.Sub(at.Truncate(24*time.Hour)) > oldDay
		if of := meter.MonthOf(day); old && of != month && !to.asks().detailed() {
			days, err := c.Store.DaysOfMonth(ctx, of)
			if err != nil {
				return err
			}
			for _, d := range days {
				sums[d.Day] = d
			}
			month = of
		}
		d, summed := sums[day]
		var err error
		switch {
		case old && summed:
			err = to.addDay(d.Entries)
		case now.Sub(at) <= meter.KeepReadings: // on an older day no host was used
			err = c.readDay(ctx, to, at, seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDay adds the readings of the rest of a day, except those that are seen.
func (c *Costs) readDay(ctx context.Context, to ended, from time.Time, seen map[cycleKey]bool) error {
	readings, err := c.Store.ReadingsSince(ctx, from)
	if err != nil {
		return err
	}
	for _, r := range readings {
		cycle, err := meter.Parse(r.Text)
		if err != nil || seen[cycleKey{r.HostKey, cycle.From}] {
			continue
		}
		if err := to.addReading(r, cycle); err != nil {
			return err
		}
	}
	return nil
}

// compare is the order of rows.
func (q Query) compare(a, b Row) int {
	byName := cmp.Or(
		cmp.Compare(a.Day, b.Day), cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.RunID, b.RunID),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Job.ID, b.Job.ID), cmp.Compare(a.Job.Title, b.Job.Title), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.UsageClass, b.UsageClass),
	)
	if q.By == ByDay {
		return byName
	}
	return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.Sum(), a.Sum()), byName)
}

package costs

import (
	"context"
	"maps"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

const (
	// WrittenWithin is how long after its release a cycle is mostly written: a host is clean by then. The readings of this time are read
	// each time.
	WrittenWithin = 15 * time.Minute
	// AfreshAfter is how long a later reading may be missing from what is spent: all of the month is read again then.
	AfreshAfter = 24 * time.Hour
)

// spending is what was used in a month up to a time, so that only what is newer has to be read. It never changes.
type spending struct {
	month string
	// readAt is when all of the month was read. The sums have the cycles that were released before until.
	readAt, until time.Time
	sums          meter.Sums
	// unwritten are the cycles of runs that a record had and that no reading has, as they were in the record last. A host that has ended is not among
	// the live ones, and has no reading until its machine is gone. Without these, what is spent would become less for that time.
	unwritten map[cycleKey]unwritten
	// lookedAt is when the records were read last.
	lookedAt time.Time
}

// goesOn reports whether what was read at a time may be the begin of what is asked for now.
func (s spending) goesOn(month string, now time.Time) bool {
	return s.month == month && !now.Before(s.until) && now.Sub(s.readAt) < AfreshAfter
}

// since adds up what was used since a month began, and returns what the next call goes on from.
func (c *Costs) since(ctx context.Context, month string, before spending, now time.Time) (Report, spending, error) {
	q, err := Query{By: ByRepository, Since: month + "-01", Until: meter.DayOf(now)}.fill(now)
	if err != nil {
		return Report{}, before, err
	}
	if !before.goesOn(month, now) {
		begin, _ := meter.ParseDay(q.Since) // which fill has checked
		before = spending{month: month, readAt: now, until: begin}
	}
	all := &builder{q: q, prices: c.Prices, sums: maps.Clone(before.sums), days: map[string]meter.Times{}, unwritten: map[cycleKey]unwritten{}}
	if all.sums == nil {
		all.sums = meter.Sums{}
	}
	after := before
	after.until = latest(before.until, now.Add(-WrittenWithin))
	rest := &builder{q: q, sums: maps.Clone(all.sums), days: map[string]meter.Times{}}
	after.sums = rest.sums
	if err := c.addNew(ctx, all, rest, before, after.until, now); err != nil {
		return Report{}, before, err
	}
	after.unwritten, after.lookedAt = all.unwritten, now
	return all.report(), after, nil
}

// addNew adds what is newer than what was read before to all of it. What was released before a time it adds to the rest, too.
func (c *Costs) addNew(ctx context.Context, all, rest *builder, before spending, until, now time.Time) error {
	seen := map[cycleKey]bool{}
	err := c.readRecords(ctx, all, c.live(""), seen, now)
	if err == nil && now.Sub(before.lookedAt) > WrittenWithin { // else most hosts that end are known from a moment ago
		err = c.readRecords(ctx, all, c.ending(now), seen, now)
	}
	if err != nil {
		return err
	}
	left := maps.Clone(before.unwritten)
	maps.DeleteFunc(left, func(key cycleKey, _ unwritten) bool { return seen[key] })
	if err := c.readDays(ctx, &splitter{all, rest, until, left}, seen, before.until, now); err != nil {
		return err
	}
	for key, u := range left {
		if err := all.addUnwritten(key, u); err != nil {
			return err
		}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// splitter adds up all that is read, and apart what was released before a time. What it reads is written, and no longer left.
type splitter struct {
	*builder
	before *builder
	until  time.Time
	left   map[cycleKey]unwritten
}

// addDay adds the sums of a day that is long over.
func (s *splitter) addDay(entries []meter.Entry) error {
	if err := s.before.addDay(entries); err != nil {
		return err
	}
	return s.builder.addDay(entries)
}

func (s *splitter) addReading(r meter.Reading, c meter.Cycle) error {
	delete(s.left, cycleKey{r.HostKey, c.From})
	if _, name := meter.NameFrom(s.until); r.Name < name {
		if err := s.before.addReading(r, c); err != nil {
			return err
		}
	}
	return s.builder.addReading(r, c)
}

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Eviction says which idle hosts of an owner go first.
type Eviction string

// The evictions.
const (
	EvictOldest Eviction = "oldest_first" // the youngest stay; the default
	EvictNewest Eviction = "newest_first" // the oldest stay
)

// Evictions lists every eviction.
var Evictions = []Eviction{EvictOldest, EvictNewest}

// Period is a time in which some hosts are kept idle. ParsePeriod makes one.
type Period struct {
	// Cron and TimeZone are as they were given, for people.
	Cron, TimeZone string
	// IdleCount is how many hosts are kept idle while the period holds.
	IdleCount int
	// Eviction is never empty.
	Eviction Eviction

	schedule *cron.SpecSchedule
	zone     *time.Location
}

// syntax is that of crontab(5), with a field of seconds before it, and L, W and
// # as others have them. Day of month and day of week are either-or when both
// are given, as in crontab(5).
const syntax = cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Extended | cron.DowOrDom

// searchYears is how far a cron expression is searched for a day on which it holds: the fifth Friday of a
// February comes once in 28 years, and once in 40 where the leap year of a century is left out.
const searchYears = 41

// PeriodError says what is wrong with one field of a period.
type PeriodError struct{ Field, Rule string }

// Error names the field first.
func (e PeriodError) Error() string { return e.Field + ": " + e.Rule }

// PeriodErrors are all that is wrong with a period.
type PeriodErrors []PeriodError

// Error has all of them, one after the other.
func (all PeriodErrors) Error() string {
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "; ")
}

// ParsePeriod reads a period. The cron expression has five fields, and holds for the whole minute that it
// matches, or six with seconds first, and holds for the second. The zone is a name of the IANA database; ""
// is UTC. The eviction may be empty. An error is PeriodErrors, with all fields that are wrong.
func ParsePeriod(expression, zone string, idleCount int, eviction Eviction) (Period, error) {
	p := Period{Cron: expression, TimeZone: zone, IdleCount: idleCount, Eviction: cmp.Or(eviction, EvictOldest)}
	var wrong PeriodErrors
	bad := func(field, format string, args ...any) {
		wrong = append(wrong, PeriodError{field, fmt.Sprintf(format, args...)})
	}
	var err error
	if p.schedule, err = parseCron(expression); err != nil {
		bad("cron", "%v", err)
	}
	if p.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
		bad("time_zone", "%.80q is no time zone; write a name of the IANA database, as Europe/Amsterdam", zone)
	}
	if idleCount < 0 {
		bad("idle_count", "%d is negative", idleCount)
	}
	if !slices.Contains(Evictions, p.Eviction) {
		bad("eviction_strategy", "%.80q is none of %s, %s", eviction, EvictOldest, EvictNewest)
	}
	if len(wrong) > 0 {
		return Period{}, wrong
	}
	return p, nil
}

func parseCron(expression string) (*cron.SpecSchedule, error) {
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 5:
		fields = slices.Insert(fields, 0, "*")
	case len(fields) != 6:
		return nil, fmt.Errorf("%.80q has %d fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first",
			expression, len(fields))
	}
	for _, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !cronItem.MatchString(item) {
				return nil, fmt.Errorf("%.80q: %.40q in %.40q is neither a value, nor a range, nor a step", expression, item, field)
			}
		}
	}
	parser, err := cron.TryNewParser(syntax)
	if err != nil {
		return nil, fmt.Errorf("make a parser: %w", err)
	}
	schedule, err := parser.WithMaxSearchYears(searchYears).Parse(strings.Join(fields, " "))
	if err != nil {
		if why := wrongValue(fields); why != "" {
			return nil, errors.New(why)
		}
		return nil, fmt.Errorf("%.80q: %w", expression, err)
	}
	of, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%.80q is no expression of times on a clock", expression)
	}
	if schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%.80q never holds: no such day comes", expression)
	}
	return of, nil
}

// Holds reports whether the clocks of the period's zone show a time that its
// expression matches. What they leave out when they are put forward never
// holds, and what they show twice when they are put back holds twice.
func (p Period) Holds(now time.Time) bool {
	if p.schedule == nil {
		return false
	}
	// The schedule sees the face of the clock as if it were UTC, where no hour is missing or comes twice.
	l := now.In(p.zone)
	clock := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
	return p.schedule.Next(clock.Add(-time.Second)).Equal(clock)
}

// stretches is how many times a period is looked at that hold together, to find out
// how long they are: all of an hour, and the way to the next.
const stretches = 100

// Brief is the longest time for which it holds at a stretch, if that is a minute or less, as with "0 8 * *
// *", or with "0 * 8 * * *" a second: all of the hour was meant, as a rule. Zero: it holds for longer.
func (p Period) Brief() time.Duration {
	var longest time.Duration
	at := p.schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	for range stretches {
		if at.IsZero() { // none comes any more
			break
		}
		for began := at; ; {
			next := p.schedule.Next(at)
			longest = max(longest, at.Add(time.Second).Sub(began))
			together := next.Equal(at.Add(time.Second))
			if at = next; !together {
				break
			}
			if longest > time.Minute {
				return 0
			}
		}
	}
	return longest
}

// Covers reports whether it holds whenever the other does, which never counts behind
// it. It may miss that, as between two zones.
func (p Period) Covers(o Period) bool {
	return always(p.schedule) || p.zone.String() == o.zone.String() && covers(p.schedule, o.schedule)
}

// Now is the first of the periods that holds.
func Now(periods []Period, now time.Time) (Period, bool) {
	for _, p := range periods {
		if p.Holds(now) {
			return p, true
		}
	}
	return Period{}, false
}

// cronField is one of the fields of an expression, for sentences about it.
type cronField struct {
	name     string
	min, max int
	names    []string
}

var cronFields = []cronField{
	{"second", 0, 59, nil}, {"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of month", 1, 31, nil},
	{"month", 1, 12, strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{"day of week", 0, 7, strings.Fields("SUN MON TUE WED THU FRI SAT")},
}

// cronItem is one of the items of a list in a field. What it means, and whether
// it is in bounds, the library says.
var cronItem = regexp.MustCompile(`^(\*|\?|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)?)(/[0-9]+|#[0-9A-Za-z]+)?$`)

// wrongValue is a sentence on the first value that its field cannot have, in an
// expression that the library refuses; empty: it refuses something else.
func wrongValue(fields []string) string {
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			parts := cronItem.FindStringSubmatch(item)
			for value := range strings.SplitSeq(parts[1], "-") {
				if !cronFields[i].allows(value) {
					return fmt.Sprintf("%s %.40s: must be %s", cronFields[i].name, value, cronFields[i].values())
				}
			}
			if strings.HasPrefix(parts[2], "/") && strings.Trim(parts[2], "/0") == "" {
				return fmt.Sprintf("%s %.40s: a step must be at least 1", cronFields[i].name, item)
			}
		}
	}
	return ""
}

// lastDays are what a day of month may be beside a number.
var lastDays = regexp.MustCompile(`^(?i)(L|LW|[0-9]+W)$`)

func (f cronField) allows(value string) bool {
	if value == "*" || value == "?" || f.name == "day of month" && lastDays.MatchString(value) {
		return true
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return slices.Contains(f.names, strings.ToUpper(value))
	}
	return f.min <= n && n <= f.max
}

func (f cronField) values() string {
	s := fmt.Sprintf("%d to %d", f.min, f.max)
	if len(f.names) > 0 {
		s += fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	return s
}

// star marks a field that holds always, in the library's sets of values.
const star = 1 << 63

// covers reports whether a schedule holds whenever the other does, on the same clock.
// True is certain; false may be wrong where the two name their days in different ways.
func covers(a, b *cron.SpecSchedule) bool {
	in := func(b, a uint64) bool { return b&^a&^star == 0 }
	if !in(b.Second, a.Second) || !in(b.Minute, a.Minute) || !in(b.Hour, a.Hour) || !in(b.Month, a.Month) {
		return false
	}
	anyDom, anyDow := a.Dom&star != 0, a.Dow&star != 0
	switch {
	case anyDom && anyDow:
		return true
	case len(a.DomConstraints)+len(a.DowConstraints)+len(b.DomConstraints)+len(b.DowConstraints) > 0:
		return a.Dom == b.Dom && a.Dow == b.Dow &&
			slices.Equal(a.DomConstraints, b.DomConstraints) && slices.Equal(a.DowConstraints, b.DowConstraints)
	case b.Dom&star != 0 && b.Dow&star != 0:
		return false
	}
	// Where both kinds of day are given either is enough.
	return (b.Dom&star != 0 || !anyDom && in(b.Dom, a.Dom)) && (b.Dow&star != 0 || !anyDow && in(b.Dow, a.Dow))
}

// always: it holds at any time, in any zone.
func always(s *cron.SpecSchedule) bool {
	return s.Second&s.Minute&s.Hour&s.Dom&s.Month&s.Dow&star != 0
}

package policy

import (
	"fmt"
	"regexp"
	"slices"
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

	schedule cron.Schedule
	zone     *time.Location
}

// syntax is that of crontab(5), with a field of seconds before it, and L, W and
// # as others have them. Day of month and day of week are either-or when both
// are given, as in crontab(5).
const syntax = cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Extended | cron.DowOrDom

// searchYears is how far a cron expression is searched for a day on which it
// holds: the fifth Friday of a February comes once in 28 years, and once in 40
// where the leap year of a century is left out.
const searchYears = 41

// ParsePeriod reads a period. The cron expression has five fields, and holds for
// the whole minute that it matches, or six with seconds first, and holds for
// the second. The zone is a name of the IANA database; "" is UTC. The eviction
// may be empty. An error begins with the name of the field that is wrong.
func ParsePeriod(expression, zone string, idleCount int, eviction Eviction) (Period, error) {
	p := Period{Cron: expression, TimeZone: zone, IdleCount: idleCount, Eviction: eviction}
	if p.Eviction == "" {
		p.Eviction = EvictOldest
	}
	var err error
	if p.schedule, err = parseCron(expression); err != nil {
		return Period{}, err
	}
	p.zone, err = time.LoadLocation(zone)
	switch {
	case err != nil || zone == "Local":
		return Period{}, fmt.Errorf("time_zone: %.80q is no time zone; write a name of the IANA database, as Europe/Amsterdam", zone)
	case idleCount < 0:
		return Period{}, fmt.Errorf("idle_count: %d is negative", idleCount)
	case !slices.Contains(Evictions, p.Eviction):
		return Period{}, fmt.Errorf("eviction_strategy: %.80q is none of %s, %s", eviction, EvictOldest, EvictNewest)
	}
	return p, nil
}

// cronItem is one of the items of a list in a field. What it means, and whether
// it is in bounds, the library says.
var cronItem = regexp.MustCompile(`^(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+|#[0-9A-Za-z]+)?$`)

func parseCron(expression string) (cron.Schedule, error) {
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 5:
		fields = slices.Insert(fields, 0, "*")
	case len(fields) != 6:
		return nil, fmt.Errorf("cron: %.80q has %d fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first",
			expression, len(fields))
	}
	for _, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !cronItem.MatchString(item) {
				return nil, fmt.Errorf("cron: %.80q: %.40q in %.40q is neither a value, nor a range, nor a step", expression, item, field)
			}
		}
	}
	parser, err := cron.TryNewParser(syntax)
	if err != nil {
		return nil, fmt.Errorf("cron: %w", err)
	}
	schedule, err := parser.WithMaxSearchYears(searchYears).Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("cron: %.80q: %w", expression, err)
	}
	if schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron: %.80q never holds: no such day comes", expression)
	}
	return schedule, nil
}

// Holds reports whether the clocks of the period's zone show a time that its
// expression matches. What they leave out when they are put forward never
// holds, and what they show twice when they are put back holds twice.
func (p Period) Holds(now time.Time) bool {
	if p.schedule == nil {
		return false
	}
	// The schedule sees the face of the clock as if it were UTC, where no hour
	// is missing or comes twice.
	l := now.In(p.zone)
	clock := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
	return p.schedule.Next(clock.Add(-time.Second)).Equal(clock)
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

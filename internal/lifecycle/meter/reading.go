package meter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// KeepReadings is how long a reading, and the time of a job, is kept: for as long the cost of a single run can be asked for.
	KeepReadings = 32 * 24 * time.Hour
	// KeepDays is how long the sums of a day are kept.
	KeepDays = 400 * 24 * time.Hour
	// Late is how long after its day a reading may be written: once its host is clean, or gone. A day is summed up again
	// for so long.
	Late = 3 * 24 * time.Hour
)

// Host is what is used.
type Host struct {
	Pool          string `json:"pool"`
	ResourceClass string `json:"resourceClass,omitempty"`
	UsageClass    string `json:"usageClass,omitempty"`
	InstanceType  string `json:"instanceType,omitempty"`
}

// Reading is the row of a cycle that has ended. It is written once and never changes.
type Reading struct {
	// Day is the day of the release, or of the end of the host, and Name its time and the host: the same cycle always has
	// the same key.
	Day  string `json:"day"`
	Name string `json:"name"`

	HostKey string `json:"hostKey"`
	Host
	// Text is the cycle; see Cycle.String.
	Text string `json:"cycle"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// NewReading is the row of a cycle that has ended.
func NewReading(hostKey string, host Host, c Cycle) Reading {
	at := known(c.ReleasedAt, c.EndedAt)
	day, name := NameFrom(at.Time())
	return Reading{
		Day: day, Name: name + "/" + hostKey, HostKey: hostKey, Host: host, Text: c.String(),
		ExpiresAt: at.Time().Add(KeepReadings),
	}
}

// NewRest is the row of the rest of a host's last cycle, if its row is there without: a replica wrote it since the host was clean, and another
// one ended the host first.
func NewRest(written Reading, c Cycle) (Reading, bool) {
	before, err := Parse(written.Text)
	if err != nil || c.GoneAt == 0 || before.GoneAt != 0 {
		return Reading{}, false
	}
	return NewReading(written.HostKey, written.Host, Cycle{From: before.EndedAt, EndedAt: max(c.GoneAt, before.EndedAt, c.ReleasedAt+1)}), true
}

// NameFrom is the day of the readings of cycles that were released at a time, and the begin of their names: those of later ones are greater.
func NameFrom(at time.Time) (day, name string) { return DayOf(at), fmt.Sprintf("%013d", At(at)) }

// Times are those of the whole cycle, of the pool and of the user.
func (r Reading) Times() Times {
	var all Times
	for _, e := range r.Entries() {
		all = all.Plus(e.Times)
	}
	return all
}

// Until is the reading of the last cycle of a host, whose machine ended at a time. Its record says when the end was decided:
// the machine may have ended before, by itself, and else does a little later. Zero: the time is not known. The key stays.
func (r Reading) Until(machineEnded time.Time) Reading {
	c, err := Parse(r.Text)
	if err != nil || machineEnded.IsZero() {
		return r
	}
	ended := max(At(machineEnded), c.From, c.PooledAt, c.ClaimedAt, c.ReadyAt)
	if c.GoneAt != 0 {
		c.EndedAt = min(c.EndedAt, ended)
		c.GoneAt = max(c.EndedAt, ended)
	} else {
		c.EndedAt = ended
	}
	r.Text = c.String()
	return r
}

// dayForm is how days are written. They are those of UTC.
const dayForm = time.DateOnly

// DayOf is the day of a time, such as "2026-11-27".
func DayOf(t time.Time) string { return t.UTC().Format(dayForm) }

// ParseDay is the begin of a day.
func ParseDay(day string) (time.Time, error) {
	t, err := time.Parse(dayForm, day)
	if err != nil {
		return t, fmt.Errorf("%q is no day: write it as %s", day, dayForm)
	}
	return t, nil
}

// Entry is time of hosts on one day, with what the hosts were and who used them. Entries of hosts that no run used have no
// User: their time is the pool's.
type Entry struct {
	Day string `json:"day"`
	Host
	User
	// Job is which job of the run used them. Only reports by job have it: the sums of days do not.
	Job Job `json:"job,omitzero"`
	// Runs counts the cycles that a run used and that ended on the day: each is one host of one run.
	Runs int `json:"runs,omitempty"`
	Times
}

// Entries are those of the reading's cycle; none of one that is damaged.
func (r Reading) Entries() []Entry {
	c, err := Parse(r.Text)
	if err != nil {
		return nil
	}
	return c.Entries(r.Host, known(c.GoneAt, c.EndedAt).Time())
}

// Entries are the times of a cycle, at most two for each day: one of the pool and one of the user. An open cycle goes on
// until now.
func (c Cycle) Entries(host Host, now time.Time) []Entry {
	var all []Entry
	until := known(c.GoneAt, known(c.EndedAt, max(At(now), c.last())))
	counted := !c.Used() || c.EndedAt == 0
	for from := c.From.Time(); ; {
		next := from.Truncate(24 * time.Hour).Add(24 * time.Hour)
		last := At(next) >= until
		pool, user := c.Between(At(from), At(next), until)
		if pool.Sum() > 0 {
			all = append(all, Entry{Day: DayOf(from), Host: host, Times: pool})
		}
		used := Entry{Day: DayOf(from), Host: host, User: c.User, Times: user}
		if !counted && At(next) >= c.EndedAt {
			used.Runs, counted = 1, true
		}
		if used.Runs > 0 || user.Sum() > 0 {
			all = append(all, used)
		}
		if from = next; last {
			return all
		}
	}
}

// Sums adds up entries by their kind, which is an entry without runs and times.
type Sums map[Entry]Entry

// Add adds an entry to the sum of a kind.
func (s Sums) Add(kind, e Entry) {
	kind.Runs, kind.Times = 0, Times{}
	sum, ok := s[kind]
	if !ok {
		sum = kind
	}
	sum.Runs += e.Runs
	sum.Times = sum.Times.Plus(e.Times)
	s[kind] = sum
}

// Sorted are the sums, in order.
func (s Sums) Sorted() []Entry { return slices.SortedFunc(maps.Values(s), Entry.compare) }

func (e Entry) compare(o Entry) int {
	return cmp.Or(
		cmp.Compare(e.Day, o.Day), cmp.Compare(e.Pool, o.Pool), cmp.Compare(e.Repository, o.Repository), cmp.Compare(e.Workflow, o.Workflow),
		cmp.Compare(e.RunID, o.RunID), cmp.Compare(e.Attempt, o.Attempt), cmp.Compare(e.Job.ID, o.Job.ID), cmp.Compare(e.Job.Title, o.Job.Title),
		cmp.Compare(e.ResourceClass, o.ResourceClass), cmp.Compare(e.UsageClass, o.UsageClass), cmp.Compare(e.InstanceType, o.InstanceType),
	)
}

// Day is the row with the sums of the readings of one day, without single runs.
type Day struct {
	// Month and Day are the key: "2026-11" and "2026-11-27".
	Month string `json:"month"`
	Day   string `json:"day"`
	// Entries are sums by day, host, repository and workflow. A cycle that began on an earlier day has time there, too.
	Entries []Entry `json:"entries,omitempty"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// MonthOf is the month of a day.
func MonthOf(day string) string { return day[:min(len(day), len("2006-01"))] }

// maxEntries bounds a Day, which is one row.
const maxEntries = 10_000

// SumUp is the row of a day, of all its readings. Of a day with very many different entries it keeps fewer details: first
// workflows go, and then repositories, which leaves those of their owner.
func SumUp(day string, readings []Reading) Day {
	sums := Sums{}
	for _, r := range readings {
		for _, e := range r.Entries() {
			sums.Add(withoutRun(e), e)
		}
	}
	for _, less := range []func(Entry) Entry{withoutWorkflow, withoutRepository} {
		if len(sums) > maxEntries {
			fewer := Sums{}
			for _, e := range sums {
				fewer.Add(less(e), e)
			}
			sums = fewer
		}
	}
	begin, _ := ParseDay(day) // a reading's own
	return Day{Month: MonthOf(day), Day: day, Entries: sums.Sorted(), ExpiresAt: begin.Add(KeepDays)}
}

func withoutRun(e Entry) Entry {
	e.RunID, e.Attempt = "", 0
	return e
}

func withoutWorkflow(e Entry) Entry {
	e.Workflow = ""
	return e
}

func withoutRepository(e Entry) Entry {
	e = withoutWorkflow(e)
	if owner, _, ok := strings.Cut(e.Repository, "/"); ok {
		e.Repository = owner + "/"
	}
	return e
}

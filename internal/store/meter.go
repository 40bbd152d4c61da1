package store

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// ReadingsByDay lists the readings of a day, in the order of their ends.
var ReadingsByDay = &Index{Name: "readings of a day", By: []string{"service"}}

// Readings are the times of hosts, by the day on which they ended. They are in a table of another kind that has the same
// columns, apart by the prefix of their keys.
var Readings = define(Spec[meter.Reading]{
	Name:       "reading",
	Label:      func(key Key) string { return "reading " + key[1] + " of " + key[0] },
	Key:        func(r *meter.Reading) Key { return Key{r.Day, r.Name} },
	KeyColumns: []string{"service", "id"},
	Version:    func(r *meter.Reading) *int64 { return &r.Version },
	Expires:    func(r *meter.Reading) time.Time { return r.ExpiresAt },
	Indexes:    []*Index{ReadingsByDay},
	SQL:        Table{Name: "workers", Prefix: "reading/"}, Dynamo: Table{Name: "requests", Prefix: "reading/"},
})

// JobTimesByDay lists the times of the jobs of a day, in the order of their ends.
var JobTimesByDay = &Index{Name: "times of the jobs of a day", By: []string{"service"}}

// JobTimes are when jobs ran and on which hosts, by the day of their ends.
var JobTimes = define(Spec[meter.JobTime]{
	Name:       "job_time",
	Label:      func(key Key) string { return "time of a job " + key[1] + " of " + key[0] },
	Key:        func(t *meter.JobTime) Key { return Key{t.Day, t.Name} },
	KeyColumns: []string{"service", "id"},
	Version:    func(t *meter.JobTime) *int64 { return &t.Version },
	Expires:    func(t *meter.JobTime) time.Time { return t.ExpiresAt },
	Indexes:    []*Index{JobTimesByDay},
	SQL:        Table{Name: "workers", Prefix: "jobtime/"}, Dynamo: Table{Name: "requests", Prefix: "jobtime/"},
})

// maxDay is how many bytes the entries of a day have as JSON, at most.
const maxDay = 8 << 20

// DaysByMonth lists the days of a month, in their order.
var DaysByMonth = &Index{Name: "days of a month", By: []string{"service"}}

// Days are the sums of the readings of each day, compressed for the same reason as slots.
var Days = define(Spec[meter.Day]{
	Name:       "day",
	Label:      func(key Key) string { return "sums of " + key[1] },
	Key:        func(d *meter.Day) Key { return Key{d.Month, d.Day} },
	KeyColumns: []string{"service", "id"},
	Version:    func(d *meter.Day) *int64 { return &d.Version },
	Expires:    func(d *meter.Day) time.Time { return d.ExpiresAt },
	Upsert:     true,
	Blank:      func(key Key) meter.Day { return meter.Day{Month: key[0], Day: key[1]} },
	Indexes:    []*Index{DaysByMonth},
	SQL:        Table{Name: "workers", Prefix: "day/"}, Dynamo: Table{Name: "requests", Prefix: "day/"},
	Large: []Large[meter.Day]{{"entries", func(d *meter.Day) any { return &d.Entries }, maxDay}},
})

// CallsByMonth lists the calls of the replicas in a month, by day and replica.
var CallsByMonth = &Index{Name: "calls of a month", By: []string{"service"}}

// CallDays are the calls to AWS that each replica made on each day.
var CallDays = define(Spec[meter.CallsOfDay]{
	Name:       "calls_of_day",
	Label:      func(key Key) string { return "calls of " + key[1] },
	Key:        func(d *meter.CallsOfDay) Key { return Key{d.Month, d.Name} },
	KeyColumns: []string{"service", "id"},
	Version:    func(d *meter.CallsOfDay) *int64 { return &d.Version },
	Expires:    func(d *meter.CallsOfDay) time.Time { return d.ExpiresAt },
	Upsert:     true,
	Blank:      func(key Key) meter.CallsOfDay { return meter.CallsOfDay{Month: key[0], Name: key[1]} },
	Indexes:    []*Index{CallsByMonth},
	SQL:        Table{Name: "workers", Prefix: "calls/"}, Dynamo: Table{Name: "requests", Prefix: "calls/"},
})

// CreateReading writes a reading: ErrExists if it is written.
func (s Store) CreateReading(ctx context.Context, r meter.Reading) error {
	return create(ctx, s, Readings, r)
}

// Reading reads a reading, consistently: ErrNotFound.
func (s Store) Reading(ctx context.Context, day, name string) (meter.Reading, error) {
	return get(ctx, s, Readings, Key{day, name})
}

// ReadingsOfDay lists the readings of a day, in the order of their ends. The newest may be missing.
func (s Store) ReadingsOfDay(ctx context.Context, day string) ([]meter.Reading, error) {
	return listAll(ctx, s, Readings, Query{Op: "readings_of_day", Index: ReadingsByDay, Partitions: [][]string{{day}}, Stale: true})
}

// ReadingsSince lists the readings of the day of a time whose cycles were released then or later, in that order. The newest may be missing.
func (s Store) ReadingsSince(ctx context.Context, at time.Time) ([]meter.Reading, error) {
	day, from := meter.NameFrom(at)
	return listAll(ctx, s, Readings, Query{Op: "readings_since", Index: ReadingsByDay, Partitions: [][]string{{day}}, From: from, Stale: true})
}

// CreateJobTime writes when a job ran: ErrExists if it is written.
func (s Store) CreateJobTime(ctx context.Context, t meter.JobTime) error {
	return create(ctx, s, JobTimes, t)
}

// JobTimesOfDay lists when the jobs ran that ended on a day, in the order of their ends. The newest may be missing.
func (s Store) JobTimesOfDay(ctx context.Context, day string) ([]meter.JobTime, error) {
	return listAll(ctx, s, JobTimes, Query{Op: "job_times_of_day", Index: JobTimesByDay, Partitions: [][]string{{day}}, Stale: true})
}

// Day reads the sums of a day. Those of one that was never written are empty and of version 0.
func (s Store) Day(ctx context.Context, day string) (meter.Day, error) {
	return get(ctx, s, Days, Key{meter.MonthOf(day), day})
}

// UpdateDay replaces the sums of a day whose stored version is d.Version (0: there are none): else ErrConflict.
func (s Store) UpdateDay(ctx context.Context, d meter.Day) (meter.Day, error) {
	return update(ctx, s, Days, d)
}

// DaysOfMonth lists the sums of the days of a month ("2026-11"), in their order.
func (s Store) DaysOfMonth(ctx context.Context, month string) ([]meter.Day, error) {
	return listAll(ctx, s, Days, Query{Op: "days_of_month", Index: DaysByMonth, Partitions: [][]string{{month}}, Stale: true})
}

// CallsOfDay reads the calls of a replica on a day. Those that were never written are none, of version 0.
func (s Store) CallsOfDay(ctx context.Context, month, name string) (meter.CallsOfDay, error) {
	return get(ctx, s, CallDays, Key{month, name})
}

// UpdateCallsOfDay replaces the calls of a replica on a day whose stored version is d.Version (0: there are none): else ErrConflict.
func (s Store) UpdateCallsOfDay(ctx context.Context, d meter.CallsOfDay) (meter.CallsOfDay, error) {
	return update(ctx, s, CallDays, d)
}

// CallsOfMonth lists the calls of all replicas in a month ("2026-11"), by day and replica.
func (s Store) CallsOfMonth(ctx context.Context, month string) ([]meter.CallsOfDay, error) {
	return listAll(ctx, s, CallDays, Query{Op: "calls_of_month", Index: CallsByMonth, Partitions: [][]string{{month}}, Stale: true})
}

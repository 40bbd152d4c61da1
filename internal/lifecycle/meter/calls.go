package meter

import (
	"slices"
	"strings"
	"time"
)

// Calls are the requests that were made to one service of AWS, such as "dynamodb".
type Calls struct {
	Service string `json:"service"`
	// Requests counts each try. HalfReads are half request units of DynamoDB for reads, since it bills by these, and Writes whole ones for writes.
	Requests  int64 `json:"requests"`
	HalfReads int64 `json:"halfReads,omitempty"`
	Writes    int64 `json:"writes,omitempty"`
}

// Plus is both together.
func (c Calls) Plus(o Calls) Calls {
	c.Requests, c.HalfReads, c.Writes = c.Requests+o.Requests, c.HalfReads+o.HalfReads, c.Writes+o.Writes
	return c
}

// CallsOfDay is the row with the calls that one replica made on one day. Only that replica writes it, and each write has all of them.
type CallsOfDay struct {
	// Month is "2026-11", and Name the day and the replica: they are the key.
	Month string `json:"month"`
	Name  string `json:"name"`
	// Services are in the order of their names.
	Services []Calls `json:"services,omitempty"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// NewCallsOfDay is the row of a replica on a day, without calls.
func NewCallsOfDay(day, replica string) CallsOfDay {
	begin, _ := ParseDay(day) // its form is that of DayOf
	return CallsOfDay{Month: MonthOf(day), Name: day + "/" + replica, ExpiresAt: begin.Add(KeepDays)}
}

// Day is the day of the row.
func (d CallsOfDay) Day() string {
	day, _, _ := strings.Cut(d.Name, "/")
	return day
}

// Grown is the row with the calls that a process has made between two counts of all that it made since its start.
func (d CallsOfDay) Grown(before, after []Calls) CallsOfDay {
	sums := map[string]Calls{}
	add := func(calls []Calls, sign int64) {
		for _, c := range calls {
			sum := sums[c.Service]
			sum.Service = c.Service
			sums[c.Service] = sum.Plus(Calls{Requests: sign * c.Requests, HalfReads: sign * c.HalfReads, Writes: sign * c.Writes})
		}
	}
	add(d.Services, 1)
	add(after, 1)
	add(before, -1)
	d.Services = nil
	for _, c := range sums {
		if c != (Calls{Service: c.Service}) {
			d.Services = append(d.Services, c)
		}
	}
	slices.SortFunc(d.Services, func(a, b Calls) int { return strings.Compare(a.Service, b.Service) })
	return d
}

// Package storetest is the conformance suite of the state store: what the
// use-cases and the agents rely on, whichever database is behind it.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// HostView is the port of one host's agent.
type HostView interface {
	Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error)
	PutReport(ctx context.Context, p lifecycle.Report) error
}

// Database is one database under test, empty at first.
type Database struct {
	Store store.Store
	// ForHost is the view of a host's agent.
	ForHost func(hostKey string) HostView
}

// group are the cases about one thing.
type group struct {
	name string
	// tests use one goroutine.
	tests []suiteTest
	// underRace is for tests of listings, for which a store may start goroutines (ListsInGoroutines): in make test, one
	// of so many is run under the race detector; 0: none.
	underRace int
	// concurrent tests write from many goroutines. The race detector sees all of them.
	concurrent []suiteTest
}

// groups are in the order of their files.
var groups []group

// add has Run run the group.
func add(g group) group {
	groups = append(groups, g)
	return g
}

// Listing is how a store lists rows.
type Listing bool

const (
	// ListsInCaller is a store that lists in the goroutine of its caller.
	ListsInCaller Listing = false
	// ListsInGoroutines is a store that starts goroutines for some listings.
	ListsInGoroutines Listing = true
)

// Run runs the suite. open makes a new database, whose own clock is now, and ends it with the test.
func Run(t *testing.T, listing Listing, open func(t *testing.T, now func() time.Time) Database) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			step, concurrent := 1, group.underRace > 0 && listing == ListsInGoroutines
			if concurrent {
				step = racepass.Every(t, group.underRace)
			}
			for i := 0; i < len(group.tests); i += step {
				t.Run(group.tests[i].name, func(t *testing.T) {
					if !concurrent {
						racepass.OneGoroutine(t)
					}
					group.tests[i].in(t, open)
				})
			}
			for _, test := range group.concurrent {
				t.Run(test.name, func(t *testing.T) { test.in(t, open) })
			}
		})
	}
}

type suiteTest struct {
	name string
	run  func(t *testing.T, w world)
}

// in runs the test in a database of its own.
func (test suiteTest) in(t *testing.T, open func(t *testing.T, now func() time.Time) Database) {
	c := &clock{now: start}
	test.run(t, world{Database: open(t, c.Now), clock: c})
}

// world is a database with the clock that it reads.
type world struct {
	Database
	clock *clock
}

// start is when every test begins: a time with nanoseconds, in UTC.
var start = time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

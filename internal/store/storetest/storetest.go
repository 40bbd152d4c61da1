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

// group are the cases about one thing. Those that are concurrent are run under the race detector in make test: they
// write from many goroutines, or read what a store may ask for from several.
type group struct {
	name       string
	tests      []suiteTest
	concurrent bool
	// underRace: in make test, one case of so many is run under the race detector; 0: each.
	underRace int
}

// groups are in the order of their files.
var groups []group

// add has Run run the group.
func add(g group) group {
	groups = append(groups, g)
	return g
}

// Run runs the suite. open makes a new database, whose own clock is now, and ends it with the test.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) Database) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			if !group.concurrent {
				racepass.OneGoroutine(t)
			}
			step := 1
			if group.underRace > 0 {
				step = racepass.Every(t, group.underRace)
			}
			for i := 0; i < len(group.tests); i += step {
				test := group.tests[i]
				t.Run(test.name, func(t *testing.T) {
					c := &clock{now: start}
					test.run(t, world{Database: open(t, c.Now), clock: c})
				})
			}
		})
	}
}

type suiteTest struct {
	name string
	run  func(t *testing.T, w world)
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

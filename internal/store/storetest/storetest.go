// Package storetest is the conformance suite of the state store: what the
// use-cases and the agents rely on, whichever database is behind it.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// Store is the use-cases' port.
type Store interface {
	CreateInstance(ctx context.Context, r lifecycle.Record) error
	UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error)
	ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error)
	Instance(ctx context.Context, hostKey string) (lifecycle.Record, error)
	Instances(ctx context.Context, hostKeys []string) ([]lifecycle.Record, error)
	InstancesOfRun(ctx context.Context, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	ListInstances(ctx context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)

	Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error)
	AllReports(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error)
	DeleteReport(ctx context.Context, hostKey string) error

	CreateRequest(ctx context.Context, q lifecycle.Request) error
	UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error)
	Request(ctx context.Context, repository, runID, requestID string) (lifecycle.Request, error)
	RequestsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Request, error)
	DueRequests(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error)

	AddEvents(ctx context.Context, events []lifecycle.Event) error
	EventsOfRun(ctx context.Context, repository, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)
	EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (lifecycle.HostHistory, error)
	LastEvent(ctx context.Context) (string, error)
	EventsSince(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)

	Lease(ctx context.Context, name string) (lifecycle.Lease, error)
	TakeLease(ctx context.Context, l lifecycle.Lease) (lifecycle.Lease, error)

	JobStore
	WorkerStore
	GuardStore

	Service(ctx context.Context, name string) (model.Service, error)
	UpdateService(ctx context.Context, s model.Service) (model.Service, error)
}

// GuardStore is the use-cases' port for what bounds the fleet as a whole.
type GuardStore interface {
	FleetHold(ctx context.Context) (lifecycle.FleetHold, error)
	UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error)
	Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error)
	UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error)
	QuotaLedger(ctx context.Context, name string) (lifecycle.QuotaLedger, error)
	UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error)
}

// JobStore is the use-cases' port for what GitHub told them.
type JobStore interface {
	CreateWebhook(ctx context.Context, w lifecycle.Webhook) error
	UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error)
	Webhook(ctx context.Context, deliveryID string) (lifecycle.Webhook, error)
	DueWebhooks(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Webhook], error)

	CreateJob(ctx context.Context, j lifecycle.Job) error
	UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error)
	Job(ctx context.Context, id int64) (lifecycle.Job, error)
	OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error)
	WaitingJobs(ctx context.Context, pool string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)
	DueJobs(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)

	SlotTable(ctx context.Context, pool string) (lifecycle.SlotTable, error)
	UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error)

	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// HostView is the port of one host's agent.
type HostView interface {
	Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error)
	PutReport(ctx context.Context, p lifecycle.Report) error
}

// Database is one database under test, empty at first.
type Database struct {
	Store Store
	// ForHost is the view of a host's agent.
	ForHost func(hostKey string) HostView
}

// Run runs the suite. open makes a new database, whose own clock is now, and
// ends it with the test.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) Database) {
	// Those that are concurrent are run under the race detector in make test: they
	// write from many goroutines, or read what a store may ask for from several.
	groups := []struct {
		name       string
		tests      []suiteTest
		concurrent bool
	}{
		{"instances", instanceTests, false},
		{"claim", claimTests, true},
		{"writers", writerTests, true},
		{"indexes", indexTests, true},
		{"pages", pageTests, true},
		{"requests", requestTests, false},
		{"reports", reportTests, false},
		{"events", eventTests, true},
		{"leases", leaseTests, false},
		{"services", serviceTests, false},
		{"webhooks", webhookTests, false},
		{"jobs", jobTests, false},
		{"turns", turnTests, false},
		{"guards", guardTests, false},
		{"seen", seenTests, false},
		{"work", workTests, true},
		{"workers", workerTests, true},
		{"expiry", expiryTests, false},
		{"errors", errorTests, false},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			if !group.concurrent {
				racepass.OneGoroutine(t)
			}
			for _, test := range group.tests {
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

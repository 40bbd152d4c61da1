package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

const (
	// censusEvery bounds how often the hosts are counted, which reads all of
	// them. Collectors scrape about as often, and one that nobody scrapes
	// never counts.
	censusEvery = 30 * time.Second
	// censusTimeout is less than collectors wait for an answer (10 s).
	censusTimeout = 5 * time.Second
	// censusPage is how many records are read at once.
	censusPage = 1000
)

// census counts the hosts by pool and state, the jobs and turns of job pools, and
// what services have, when metrics are asked for.
type census struct {
	store  fleet.Store
	jobs   fleet.JobStore
	guards fleet.GuardStore
	pools  []string // the job pools
	// services are those of the configuration, as they were last looked at.
	services func(context.Context, pageOf) (lifecycle.Page[services.Status], error)
	budgets  func() []github.Budget
	metrics  *telemetry.Metrics
	log      hclog.Logger

	mu   sync.Mutex
	last time.Time
}

// before counts the hosts before next answers, if it is time.
func (c *census) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, b := range c.budgets() {
			c.metrics.SetBudget(b.Credential, b.Remaining)
		}
		if c.due(time.Now()) {
			c.take(r.Context())
			c.takeJobs(r.Context())
			c.takeServices(r.Context())
			c.takeHold(r.Context())
		}
		next.ServeHTTP(w, r)
	})
}

// due gives each turn to one caller.
func (c *census) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) < censusEvery {
		return false
	}
	c.last = now
	return true
}

// take leaves the last counts in place when the store cannot be read.
func (c *census) take(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	counts := map[telemetry.HostsOf]int{}
	living := lifecycle.Filter{States: slices.DeleteFunc(slices.Clone(lifecycle.States),
		func(s lifecycle.State) bool { return s == lifecycle.StateTerminated })}
	for page := (lifecycle.PageOf{Limit: censusPage}); ; {
		hosts, err := c.store.ListInstances(ctx, living, page)
		if err != nil {
			c.log.Warn("hosts were not counted", "error", err)
			return
		}
		for _, r := range hosts.Items {
			counts[telemetry.HostsOf{Pool: r.Pool, State: r.State}]++
		}
		if page.After = hosts.Next; page.After == "" {
			break
		}
	}
	c.metrics.SetHosts(counts)
}

// takeServices tells what services have. Those that are scaled are not counted for
// it, but for their workers.
func (c *census) takeServices(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	counts := map[string]telemetry.ServiceCounts{}
	for page := (pageOf{Limit: censusPage}); ; {
		services, err := c.services(ctx, page)
		if err != nil {
			c.log.Warn("services were not counted", "error", err)
			return
		}
		for _, s := range services.Items {
			counts[s.Name] = serviceCounts(s)
		}
		if page.After = services.Next; page.After == "" {
			break
		}
	}
	c.metrics.SetServices(counts)
}

func serviceCounts(s services.Status) telemetry.ServiceCounts {
	counts := telemetry.ServiceCounts{Queued: s.Seen.Queued}
	if s.Scaled() && s.Seen.Version > 0 {
		counts.Desired, counts.Running = &s.Seen.Wanted, &s.Seen.Running
	}
	if s.Workers != nil {
		online := s.Workers.Online()
		counts.Online = &online
	}
	return counts
}

// takeHold tells whether the fleet is held.
func (c *census) takeHold(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	hold, err := c.guards.FleetHold(ctx)
	if err != nil {
		c.log.Warn("the fleet's hold was not read", "error", err)
		return
	}
	c.metrics.SetFleetHeld(hold.InForce(time.Now()))
}

// maxWaiting bounds what is counted of the jobs that wait in a pool: with more
// the count says so many, and is alarming enough.
const maxWaiting = 2000

// takeJobs counts what waits and what is at work in the job pools.
func (c *census) takeJobs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, censusTimeout)
	defer cancel()
	for _, pool := range c.pools {
		turns, err := c.jobs.SlotTable(ctx, pool)
		if err != nil {
			c.log.Warn("turns were not counted", "pool", pool, "error", err)
			return
		}
		waiting, err := c.waiting(ctx, pool)
		if err != nil {
			c.log.Warn("waiting jobs were not counted", "pool", pool, "error", err)
			return
		}
		c.metrics.SetJobs(pool, waiting, len(turns.Open))
	}
}

func (c *census) waiting(ctx context.Context, pool string) (int, error) {
	waiting := 0
	for page := (lifecycle.PageOf{Limit: censusPage}); waiting < maxWaiting; {
		jobs, err := c.jobs.WaitingJobs(ctx, pool, page)
		if err != nil {
			return 0, err
		}
		waiting += len(jobs.Items)
		if page.After = jobs.Next; page.After == "" {
			break
		}
	}
	return waiting, nil
}

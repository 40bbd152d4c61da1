package instrument

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

const (
	// CountEvery is the least time between two counts: each reads every host.
	// Collectors scrape about as often. A replica that is not scraped never counts.
	CountEvery = 30 * time.Second
	// countTimeout bounds each count. It is less than collectors wait for an answer (10 s).
	countTimeout = 5 * time.Second
	// pageSize is how many rows are read at once.
	pageSize = 1000
)

// HostGauges sets the gauges that are counted when metrics are scraped: hosts by pool and
// state, the jobs and slots of job pools, the runners of services, and GitHub's budgets.
type HostGauges struct {
	Store  fleet.Store
	Jobs   fleet.JobStore
	Guards fleet.GuardStore
	// WhyWaits answers why a waiting job of a job pool has no host.
	WhyWaits func(context.Context, lifecycle.Job, time.Time) (fleet.WaitAnswer, error)
	// Requests lists the requests of runs that wait for hosts, each with what holds it.
	Requests func(context.Context, time.Time) (waits []fleet.Wait, more bool, err error)
	// JobPools are the names of the job pools, and Pools of all.
	JobPools, Pools []string
	// Services lists the services of the configuration as they were last seen.
	Services func(context.Context, lifecycle.PageOf) (lifecycle.Page[services.Status], error)
	// Budgets are what GitHub lets the credentials do, and CostBudgets how much is used of what may be spent.
	Budgets     func() []github.Budget
	CostBudgets func(context.Context, time.Time) ([]fleet.BudgetUse, time.Time, error)
	// Price is what an hour of a machine costs; false: it has no price. nil: none has.
	Price func(instanceType, usageClass string) (dollars float64, rough, ok bool)
	// ClockOffset is how far the store's clock is from that of this machine; nil: they are the same.
	ClockOffset func() time.Duration
	Metrics     *telemetry.Metrics
	Log         hclog.Logger

	mu   sync.Mutex
	last time.Time
}

// Before counts before next answers, unless it has counted within CountEvery.
func (g *HostGauges) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, b := range g.Budgets() {
			g.Metrics.SetBudget(b.Credential, b.Remaining)
		}
		if g.ClockOffset != nil {
			g.Metrics.SetClockOffset(g.ClockOffset())
		}
		if g.due(time.Now()) {
			for _, count := range []func(context.Context){g.countHosts, g.countJobs, g.countRequests, g.countServices, g.readHold, g.readPauses, g.readBudgets} {
				ctx, cancel := context.WithTimeout(r.Context(), countTimeout)
				count(ctx)
				cancel()
			}
		}
		next.ServeHTTP(w, r)
	})
}

// due reports whether it is time to count, to one caller each time.
func (g *HostGauges) due(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.last.IsZero() && now.Sub(g.last) < CountEvery {
		return false
	}
	g.last = now
	return true
}

// countHosts leaves the last counts in place when the store cannot be read.
func (g *HostGauges) countHosts(ctx context.Context) {
	counts, rates := map[telemetry.HostsOf]int{}, map[telemetry.RateOf]float64{}
	living := lifecycle.Filter{States: lifecycle.LiveStates}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return g.Store.ListInstances(ctx, living, page)
	}
	for r, err := range listing.All(lifecycle.PageOf{Limit: pageSize}, list) {
		if err != nil {
			g.Log.Warn("hosts not counted", logkey.Error, err)
			return
		}
		if r.Stopped() {
			counts[telemetry.HostsOf{Pool: r.Pool, State: telemetry.HostStopped}]++
			continue // its machine costs nothing, or soon
		}
		counts[telemetry.HostsOf{Pool: r.Pool, State: r.State}]++
		if dollars, ok := g.price(r); ok {
			rates[telemetry.RateOf{Pool: r.Pool, UsageClass: r.UsageClass}] += dollars
		}
	}
	g.Metrics.SetHosts(counts)
	g.Metrics.SetRates(rates)
}

// price is what an hour of a host costs; false: it has no price.
func (g *HostGauges) price(r lifecycle.Record) (dollars float64, ok bool) {
	if g.Price == nil {
		return 0, false
	}
	dollars, _, ok = g.Price(r.InstanceType, string(r.UsageClass))
	return dollars, ok
}

// countRequests counts the requests that wait for hosts, by what holds them.
func (g *HostGauges) countRequests(ctx context.Context) {
	waits, _, err := g.Requests(ctx, time.Now())
	if err != nil {
		g.Log.Warn("requests not counted", logkey.Error, err)
		return
	}
	counts := map[telemetry.RequestsOf]int{}
	for _, w := range waits {
		counts[telemetry.RequestsOf{Pool: w.Pool, Why: w.Code}]++
	}
	g.Metrics.SetRequests(counts)
}

// countServices sets the gauges of services. The tasks of a scaled service are those of its
// last check; only its workers are counted now.
func (g *HostGauges) countServices(ctx context.Context) {
	counts := map[string]telemetry.ServiceCounts{}
	list := func(page lifecycle.PageOf) (lifecycle.Page[services.Status], error) { return g.Services(ctx, page) }
	for s, err := range listing.All(lifecycle.PageOf{Limit: pageSize}, list) {
		if err != nil {
			g.Log.Warn("services not counted", logkey.Error, err)
			return
		}
		counts[s.Name] = serviceCounts(s)
	}
	g.Metrics.SetServices(counts)
}

func serviceCounts(s services.Status) telemetry.ServiceCounts {
	counts := telemetry.ServiceCounts{Queued: s.Seen.Queued}
	if s.Scaled() && s.Seen.Version > 0 {
		counts.Desired, counts.Running = &s.Seen.Wanted, &s.Seen.Running
	}
	if s.Workers != nil {
		online, offline := s.Workers.Online(), s.Workers.Offline()
		counts.Online, counts.Offline = &online, &offline
	}
	return counts
}

// readHold sets the gauge of the hold on the whole fleet.
func (g *HostGauges) readHold(ctx context.Context) {
	hold, err := g.Guards.FleetHold(ctx)
	if err != nil {
		g.Log.Warn("fleet hold not read", logkey.Error, err)
		return
	}
	g.Metrics.SetFleetHeld(hold.InForce(time.Now()))
}

// readPauses sets the gauge of the pauses of pools.
func (g *HostGauges) readPauses(ctx context.Context) {
	for _, pool := range g.Pools {
		p, err := g.Guards.Pause(ctx, pool)
		if err != nil {
			g.Log.Warn("pauses of pools not read", logkey.Error, err)
			return
		}
		g.Metrics.SetPoolPaused(pool, p.On())
	}
}

// readBudgets sets the gauges of the budgets.
func (g *HostGauges) readBudgets(ctx context.Context) {
	uses, _, err := g.CostBudgets(ctx, time.Now())
	if err != nil {
		g.Log.Warn("budgets not read", logkey.Error, err)
		return
	}
	for _, u := range uses {
		g.Metrics.SetBudgetUsed(u.Name(), u.Share())
	}
}

// maxWaiting bounds the count of the jobs that wait in a pool. A larger backlog is reported
// as that many, which is alarming enough.
const maxWaiting = 2000

// countJobs counts the waiting jobs and the open slots of the job pools, and asks why the job that waits longest has no host.
func (g *HostGauges) countJobs(ctx context.Context) {
	for _, pool := range g.JobPools {
		slots, err := g.Jobs.SlotTable(ctx, pool)
		if err != nil {
			g.Log.Warn("slots not counted", logkey.Pool, pool, logkey.Error, err)
			return
		}
		counts, err := g.waiting(ctx, pool)
		if err != nil {
			g.Log.Warn("waiting jobs not counted", logkey.Pool, pool, logkey.Error, err)
			return
		}
		counts.Slots = len(slots.Open)
		g.Metrics.SetJobs(pool, counts)
	}
}

func (g *HostGauges) waiting(ctx context.Context, pool string) (telemetry.JobCounts, error) {
	var counts telemetry.JobCounts
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
		return g.Jobs.WaitingJobs(ctx, pool, page)
	}
	for j, err := range listing.All(lifecycle.PageOf{Limit: pageSize}, list) {
		if err != nil {
			return counts, err
		}
		if counts.Waiting == 0 {
			why, err := g.WhyWaits(ctx, j, time.Now())
			if err != nil {
				return counts, err
			}
			counts.Why = why.Code
		}
		if counts.Waiting++; counts.Waiting == maxWaiting {
			break
		}
	}
	return counts, nil
}

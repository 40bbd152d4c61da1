package telemetry

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// The buckets, in seconds. A phase of a host's life takes from 10 ms, warm and on one machine, to the 30
// minutes that the longest Provision may wait. GitHub gives the times of jobs in seconds, and lets one wait for a day. A request may be as
// quick as a read of one row.
var (
	phaseBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600, 1800}
	queueBuckets = []float64{1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800, 3600, 10800, 86400}
	sweepBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300}
	rpcBuckets   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
)

// Metrics are the counts of one process, on a registry of their own. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	phase    map[string]prometheus.Histogram
	starts   *prometheus.HistogramVec
	taken    *prometheus.CounterVec
	queued   *prometheus.HistogramVec
	unserved *prometheus.CounterVec
	busy     *recent
	calls    *prometheus.CounterVec
	decided  *prometheus.CounterVec
	sweeps   *prometheus.HistogramVec
	ages     *ages
	hosts    *gauges
	rates    *gauges
	requests *gauges
	rpcs     *prometheus.HistogramVec
	webhooks *prometheus.CounterVec
	runners  *prometheus.GaugeVec
	budgets  *prometheus.GaugeVec
	waiting  *prometheus.GaugeVec
	waitsFor *prometheus.GaugeVec
	turns    *prometheus.GaugeVec
	paused   *prometheus.GaugeVec
	ofBudget *prometheus.GaugeVec
	held     prometheus.Gauge
	clock    prometheus.Gauge
	guarded  *prometheus.GaugeVec
	gone     *prometheus.CounterVec
	spent    *prometheus.CounterVec
	cost     *prometheus.CounterVec
	services *gauges
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		phase: map[string]prometheus.Histogram{
			"claim":    phase("claim", "From the start of a Provision to the claim of its hosts, if all of them waited in the pool."),
			"register": phase("register", "From the claim or launch of a host to its readiness for jobs."),
			"release":  phase("release", "From the release of a host to its return to the pool, clean."),
		},
		starts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remuda_provision_duration_seconds", Help: "From a request to the readiness of all its hosts, by how the slowest of them came.", Buckets: phaseBuckets,
		}, []string{"start"}),
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_hosts_taken_total", Help: "Hosts that requests got: those that waited in the pool, and those that were launched.",
		}, []string{"pool", "from"}),
		unserved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_jobs_unserved_total", Help: "Queued jobs that webhooks announced and that get no host, by the reason.",
		}, []string{"code"}),
		queued: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remuda_job_queue_duration_seconds", Help: "From the queueing of a job of a job pool to its start on a runner, as GitHub reports both.", Buckets: queueBuckets,
		}, []string{"pool"}),
		busy: &recent{desc: prometheus.NewDesc("remuda_hosts_busy", "Hosts with a job, as their agents said at the last liveness sweep. Only the replica that sweeps has it.", nil, nil)},
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_calls_total", Help: "Calls to the store, the queue, the cloud, GitHub, and the services of runners, by their class of error.",
		}, []string{"operation", "result"}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_decisions_total", Help: "Decisions and actions that the history of events has, by their reason codes.",
		}, []string{"action", "code"}),
		sweeps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remuda_sweep_duration_seconds", Help: "How long the sweeps of this replica took, by their class of error.", Buckets: sweepBuckets,
		}, []string{"sweep", "result"}),
		ages:     newAges(),
		hosts:    &gauges{descs: []*prometheus.Desc{hostsDesc}},
		rates:    &gauges{descs: []*prometheus.Desc{ratesDesc}},
		requests: &gauges{descs: []*prometheus.Desc{requestsDesc}},
		rpcs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remuda_grpc_request_duration_seconds", Help: "How long gRPC requests took, by method and status code. A Provision waits for its hosts.", Buckets: rpcBuckets,
		}, []string{"method", "code"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_webhooks_total", Help: "Deliveries of GitHub's webhooks, by event and by what came of them.",
		}, []string{"event", "outcome"}),
		runners: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_runner_version_ends_timestamp_seconds", Help: "When GitHub stops giving jobs to a version of actions/runner that hosts have.",
		}, []string{"version"}),
		budgets: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_github_requests_remaining", Help: "Requests that GitHub's API takes from a credential until its limit is reset, as far as is known.",
		}, []string{"credential"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_jobs_waiting", Help: "Queued jobs of a job pool that no runner has taken, at most 2000.",
		}, []string{"pool"}),
		waitsFor: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_jobs_waiting_reason", Help: "1 for the reason why the job of a job pool that waits longest has no host; no series while none waits.",
		}, []string{"pool", "code"}),
		turns: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_turns_open", Help: "Slots of a job pool: hosts at work for it, or about to be.",
		}, []string{"pool"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "remuda_fleet_held", Help: "1 while an operator holds the whole fleet, so that nothing is ended; else 0.",
		}),
		clock: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "remuda_clock_offset_seconds", Help: "What has to be added to this machine's clock to have that of AWS; beyond 60 either way the replica does nothing.",
		}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_pool_paused", Help: "1 while an operator pauses the pool, so that it gives out and launches no host; else 0.",
		}, []string{"pool"}),
		ofBudget: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_budget_used_ratio", Help: "The part of a budget that is used in this month; from 1 on its runs get no more hosts.",
		}, []string{"budget"}),
		guarded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "remuda_guard_held", Help: "Hosts (silence) or machines (unrecorded) that are not ended because too many failed at once.",
		}, []string{"guard"}),
		spent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_host_time_seconds_total", Help: "Time of hosts by its part, counted when a run has given its host back, and when a machine is gone.",
		}, []string{"pool", "part"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_host_cost_dollars_total", Help: "What the time of hosts cost in US dollars, by the prices of the configuration, counted with that time.",
		}, []string{"pool", "usage_class", "part"}),
		gone: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remuda_machines_gone_total", Help: "Machines of hosts that ended without an order of the fleet, by the code that the cloud gives.",
		}, []string{"code"}),
		services: &gauges{descs: []*prometheus.Desc{queuedDesc, desiredDesc, runningDesc, onlineDesc}},
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "remuda_build_info", Help: "Always 1; the labels are what was built.",
		ConstLabels: prometheus.Labels{"version": Version, "commit": commit(), "go": runtime.Version()},
	})
	build.Set(1)
	for _, h := range m.phase {
		m.registry.MustRegister(h)
	}
	m.registry.MustRegister(m.starts, m.taken, m.queued, m.unserved, m.busy)
	for _, code := range unservedCodes {
		m.unserved.WithLabelValues(string(code))
	}
	m.registry.MustRegister(m.calls, m.decided, m.sweeps, m.ages, m.hosts, m.rates, m.requests, m.rpcs, m.webhooks, m.runners, m.budgets, m.waiting, m.waitsFor, m.turns, m.held, m.clock, m.paused, m.ofBudget, m.guarded, m.gone, m.spent, m.cost, m.services, build,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(heapLive)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// heapLive is what the last collection left, as go_gc_heap_live_bytes. Only it tells growth: the heap in use counts garbage too.
var heapLive = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/gc/heap/live:bytes$")}

func phase(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "remuda_" + name + "_duration_seconds", Help: help, Buckets: phaseBuckets})
}

// Handler serves the metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Claimed counts a host that was claimed d after its Provision began.
func (m *Metrics) Claimed(d time.Duration) { m.observe("claim", d) }

// Registered counts a host that registered d after it was claimed or launched.
func (m *Metrics) Registered(d time.Duration) { m.observe("register", d) }

// Released counts a host that was clean d after its release.
func (m *Metrics) Released(d time.Duration) { m.observe("release", d) }

// Provisioned counts a request that had all its hosts after d. start is cold, warm or hot.
func (m *Metrics) Provisioned(start string, d time.Duration) {
	m.starts.WithLabelValues(start).Observe(d.Seconds())
}

// Took counts the hosts that a request of a pool got.
func (m *Metrics) Took(pool string, pooled, launched int) {
	m.taken.WithLabelValues(pool, "pool").Add(float64(pooled))
	m.taken.WithLabelValues(pool, "launch").Add(float64(launched))
}

// JobStarted counts a job of a job pool that a runner took d after it was queued.
func (m *Metrics) JobStarted(pool string, d time.Duration) {
	m.queued.WithLabelValues(pool).Observe(d.Seconds())
}

// unservedCodes are the reasons for which a job gets no host. Each is served as 0 from the start: an increase is from a value that was there, so the
// first job of a reason would raise no alert otherwise.
var unservedCodes = []lifecycle.ReasonCode{
	lifecycle.ReasonLabelUnknown, lifecycle.ReasonNotServed, lifecycle.ReasonNotProvisioned, lifecycle.ReasonDefaultLabels, lifecycle.ReasonFork,
	lifecycle.ReasonRunUnknown, lifecycle.ReasonOtherRunners,
}

// JobUnserved counts a queued job that gets no host.
func (m *Metrics) JobUnserved(code lifecycle.ReasonCode) {
	m.unserved.WithLabelValues(string(code)).Inc()
}

// Busy says how many hosts have a job.
func (m *Metrics) Busy(hosts int) { m.busy.set(hosts, time.Now()) }

func (m *Metrics) observe(phase string, d time.Duration) { m.phase[phase].Observe(d.Seconds()) }

// Swept counts a sweep that ended after d, with err or well.
func (m *Metrics) Swept(sweep string, d time.Duration, err error) {
	m.sweeps.WithLabelValues(sweep, resultOf(err)).Observe(d.Seconds())
	m.ages.swept(sweep, err == nil, time.Now())
}

// Decided counts an event of the history. Both labels are from the lists of package lifecycle.
func (m *Metrics) Decided(action lifecycle.Action, code lifecycle.ReasonCode) {
	if m != nil {
		m.decided.WithLabelValues(string(action), string(code)).Inc()
	}
}

// Called counts a call of a port, such as "store.claim_instance", by its class of error.
func (m *Metrics) Called(operation string, err error) {
	m.calls.WithLabelValues(operation, resultOf(err)).Inc()
}

// Requested counts a gRPC request by its method and status code.
func (m *Metrics) Requested(method, code string, d time.Duration) {
	m.rpcs.WithLabelValues(method, code).Observe(d.Seconds())
}

// Delivered counts a delivery of GitHub's by its event and what came of it, such
// as "accepted". The caller bounds both: neither is what a sender wrote.
func (m *Metrics) Delivered(event, outcome string) { m.webhooks.WithLabelValues(event, outcome).Inc() }

// Guarded says how many a guard against mass failures keeps from being ended. Its names are fixed.
func (m *Metrics) Guarded(guard string, held int) {
	m.guarded.WithLabelValues(guard).Set(float64(held))
}

// endCodes are the codes of EC2's StateReason (API reference, "StateReason"), and those that it gives for a KMS key that a launch cannot use.
var endCodes = []string{
	"Server.InsufficientInstanceCapacity", "Server.InternalError", "Server.ScheduledStop", "Server.SpotInstanceShutdown", "Server.SpotInstanceTermination",
	"Client.InstanceInitiatedShutdown", "Client.InstanceTerminated", "Client.InternalError", "Client.InvalidSnapshot.NotFound",
	"Client.UserInitiatedHibernate", "Client.UserInitiatedShutdown", "Client.VolumeLimitExceeded", "Client.InvalidKMSKey.InvalidState",
}

// MachineGone counts a machine that ended without an order of the fleet. why begins with EC2's code; the label is one of endCodes, other, or none
// where EC2 gave no reason.
func (m *Metrics) MachineGone(why string) {
	code, _, _ := strings.Cut(why, ":")
	switch {
	case why == "":
		code = "none"
	case !slices.Contains(endCodes, code):
		code = "other"
	}
	m.gone.WithLabelValues(code).Inc()
}

// HostTime counts the time that a host has spent, by its parts.
func (m *Metrics) HostTime(pool string, t meter.Times) {
	for part, d := range partsOf(t) {
		m.spent.WithLabelValues(pool, part).Add(d.Seconds())
	}
}

// HostCost counts what the time of a host cost, at a number of dollars an hour.
func (m *Metrics) HostCost(h meter.Host, perHour float64, t meter.Times) {
	for part, d := range partsOf(t) {
		m.cost.WithLabelValues(h.Pool, h.UsageClass, part).Add(perHour * d.Hours())
	}
}

// partsOf are the parts of a time, by the label of each.
func partsOf(t meter.Times) map[string]time.Duration {
	return map[string]time.Duration{"boot": t.Boot, "busy": t.Busy, "clean": t.Clean, "idle": t.Idle}
}

// RunnersEnd replaces what is known of the versions of actions/runner that hosts
// have: when they get no jobs any more.
func (m *Metrics) RunnersEnd(at map[string]time.Time) {
	m.runners.Reset()
	for version, t := range at {
		m.runners.WithLabelValues(version).Set(float64(t.Unix()))
	}
}

// SetBudget says how many requests to GitHub a credential has left.
func (m *Metrics) SetBudget(credential string, remaining int) {
	m.budgets.WithLabelValues(credential).Set(float64(remaining))
}

// SetFleetHeld tells whether an operator holds the whole fleet.
func (m *Metrics) SetFleetHeld(held bool) { m.held.Set(oneIf(held)) }

// SetClockOffset says how far the store's clock is from that of this machine.
func (m *Metrics) SetClockOffset(d time.Duration) { m.clock.Set(d.Seconds()) }

// SetPoolPaused tells whether an operator pauses a pool.
func (m *Metrics) SetPoolPaused(pool string, paused bool) {
	m.paused.WithLabelValues(pool).Set(oneIf(paused))
}

// SetBudgetUsed says which part of a budget is used.
func (m *Metrics) SetBudgetUsed(name string, part float64) {
	m.ofBudget.WithLabelValues(name).Set(part)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// JobCounts are of one job pool.
type JobCounts struct {
	// Waiting are the jobs that wait, and Why is the reason of the one that waits longest; empty: none waits.
	Waiting int
	Why     lifecycle.ReasonCode
	// Slots are open.
	Slots int
}

// SetJobs says how many jobs of a job pool wait and why, and how many slots are open.
func (m *Metrics) SetJobs(pool string, c JobCounts) {
	m.waiting.WithLabelValues(pool).Set(float64(c.Waiting))
	m.turns.WithLabelValues(pool).Set(float64(c.Slots))
	m.waitsFor.DeletePartialMatch(prometheus.Labels{"pool": pool})
	if c.Why != "" {
		m.waitsFor.WithLabelValues(pool, string(c.Why)).Set(1)
	}
}

// results are the classes of error, by the word under which they are counted.
var results = []struct {
	err  error
	word string
}{
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "timeout"},
	{lifecycle.ErrUnavailable, "unavailable"},
	{lifecycle.ErrConflict, "lost"},
	{lifecycle.ErrNotFound, "not_found"},
	{lifecycle.ErrExists, "exists"},
	{lifecycle.ErrBusy, "busy"},
}

func resultOf(err error) string {
	if err == nil {
		return "ok"
	}
	for _, r := range results {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	var shortage *lifecycle.ShortageError
	if errors.As(err, &shortage) {
		return "shortage"
	}
	return "error"
}

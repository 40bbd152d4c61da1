package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// HostsOf names a group of hosts.
type HostsOf struct {
	Pool  string
	State lifecycle.State // or HostStopped
}

// HostStopped is the state of idle hosts whose machines are stopped, or about to be.
const HostStopped lifecycle.State = "stopped"

var hostsDesc = prometheus.NewDesc("remuda_hosts", "Living hosts when they were last counted, at most 30 seconds ago.", []string{"state", "pool"}, nil)

// SetHosts replaces the counts of hosts, all at once. A group that is missing is gone.
func (m *Metrics) SetHosts(counts map[HostsOf]int) {
	var values []prometheus.Metric
	for of, n := range counts {
		values = append(values, gauge(hostsDesc, n, string(of.State), of.Pool))
	}
	m.hosts.set(values)
}

// RateOf names a group of hosts whose cost is one number.
type RateOf struct {
	Pool       string
	UsageClass lifecycle.UsageClass
}

var ratesDesc = prometheus.NewDesc("remuda_hosts_dollars_per_hour",
	"What an hour of the living hosts costs in US dollars, by the prices of the configuration, when they were last counted.", []string{"pool", "usage_class"}, nil)

// SetRates replaces what an hour of the living hosts costs, all at once. A group that is missing is gone.
func (m *Metrics) SetRates(dollars map[RateOf]float64) {
	var values []prometheus.Metric
	for of, d := range dollars {
		values = append(values, prometheus.MustNewConstMetric(ratesDesc, prometheus.GaugeValue, d, of.Pool, string(of.UsageClass)))
	}
	m.rates.set(values)
}

// RequestsOf names a group of requests of runs that wait for hosts.
type RequestsOf struct {
	Pool string
	// Why is what holds them.
	Why lifecycle.ReasonCode
}

var requestsDesc = prometheus.NewDesc("remuda_requests_waiting",
	"Requests of runs that wait for hosts, by what holds them, when they were last counted, at most 30 seconds ago. At most 2000 are read.", []string{"pool", "code"}, nil)

// SetRequests replaces the counts of requests that wait, all at once. A group that is missing is gone.
func (m *Metrics) SetRequests(counts map[RequestsOf]int) {
	var values []prometheus.Metric
	for of, n := range counts {
		values = append(values, gauge(requestsDesc, n, of.Pool, string(of.Why)))
	}
	m.requests.set(values)
}

// ServiceCounts are how many of what a runner service has. nil: it is not known,
// or the service has no such thing.
type ServiceCounts struct {
	// Queued jobs wait.
	Queued *int
	// Desired and Running are runners, of a service that is scaled.
	Desired, Running *int
	// Online and Offline are workers of its queue.
	Online, Offline *int
}

func serviceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("remuda_service_"+name, help, []string{"service"}, nil)
}

var (
	queuedDesc  = serviceDesc("jobs_waiting", "Jobs of a runner service that wait, as far as they are counted.")
	desiredDesc = serviceDesc("runners_desired", "Desired count of a service's runners on ECS, when the service was last checked.")
	runningDesc = serviceDesc("runners_running", "Runners that ECS ran for a service, when it was last looked at.")
	onlineDesc  = serviceDesc("workers_online", "Workers of a service's queue that reported in the last 60 seconds, at most 1000.")
	offlineDesc = serviceDesc("workers_offline", "Workers of a service's queue that reported in the last 24 hours and not in the last 60 seconds, at most 1000.")
)

// SetServices replaces the counts of runner services, all at once.
func (m *Metrics) SetServices(counts map[string]ServiceCounts) {
	var values []prometheus.Metric
	for name, c := range counts {
		for desc, n := range map[*prometheus.Desc]*int{queuedDesc: c.Queued, desiredDesc: c.Desired, runningDesc: c.Running, onlineDesc: c.Online, offlineDesc: c.Offline} {
			if n != nil {
				values = append(values, gauge(desc, *n, name))
			}
		}
	}
	m.services.set(values)
}

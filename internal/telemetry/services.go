package telemetry

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// ServiceCounts are how many of what a runner service has. nil: it is not known,
// or the service has no such thing.
type ServiceCounts struct {
	// Queued jobs wait.
	Queued *int
	// Desired and Running are runners, of a service that is scaled.
	Desired, Running *int
	// Online are workers of its queue.
	Online *int
}

// services tells what runner services had when they were last counted.
type services struct {
	queued, desired, running, online *prometheus.Desc

	mu     sync.Mutex
	counts map[string]ServiceCounts
}

func newServices() *services {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("remuda_service_"+name, help, []string{"service"}, nil)
	}
	return &services{
		queued:  desc("jobs_waiting", "Jobs of a runner service that wait, as far as they are counted."),
		desired: desc("runners_desired", "Runners that ECS was told to run for a service, when it was last looked at."),
		running: desc("runners_running", "Runners that ECS ran for a service, when it was last looked at."),
		online:  desc("workers_online", "Workers of a service's queue that were heard of in the last 60 seconds, at most 1000."),
	}
}

// SetServices replaces the counts of runner services, all at once.
func (m *Metrics) SetServices(counts map[string]ServiceCounts) {
	if m == nil {
		return
	}
	m.services.mu.Lock()
	defer m.services.mu.Unlock()
	m.services.counts = maps.Clone(counts)
}

// Describe implements prometheus.Collector.
func (s *services) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.queued, s.desired, s.running, s.online} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *services) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	counts := s.counts // replaced as a whole, never changed
	s.mu.Unlock()
	for name, c := range counts {
		for _, gauge := range []struct {
			desc *prometheus.Desc
			n    *int
		}{{s.queued, c.Queued}, {s.desired, c.Desired}, {s.running, c.Running}, {s.online, c.Online}} {
			if gauge.n != nil {
				ch <- prometheus.MustNewConstMetric(gauge.desc, prometheus.GaugeValue, float64(*gauge.n), name)
			}
		}
	}
}

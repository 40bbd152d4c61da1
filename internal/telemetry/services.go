package telemetry

import "github.com/prometheus/client_golang/prometheus"

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

func serviceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("remuda_service_"+name, help, []string{"service"}, nil)
}

var (
	queuedDesc  = serviceDesc("jobs_waiting", "Jobs of a runner service that wait, as far as they are counted.")
	desiredDesc = serviceDesc("runners_desired", "Desired count of a service's runners on ECS, when the service was last checked.")
	runningDesc = serviceDesc("runners_running", "Runners that ECS ran for a service, when it was last looked at.")
	onlineDesc  = serviceDesc("workers_online", "Workers of a service's queue that reported in the last 60 seconds, at most 1000.")
)

// SetServices replaces the counts of runner services, all at once.
func (m *Metrics) SetServices(counts map[string]ServiceCounts) {
	var values []prometheus.Metric
	for name, c := range counts {
		for desc, n := range map[*prometheus.Desc]*int{queuedDesc: c.Queued, desiredDesc: c.Desired, runningDesc: c.Running, onlineDesc: c.Online} {
			if n != nil {
				values = append(values, gauge(desc, *n, name))
			}
		}
	}
	m.services.set(values)
}

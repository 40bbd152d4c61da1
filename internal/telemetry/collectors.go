package telemetry

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ages tells, at each scrape, how long ago each sweep last went well.
type ages struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	last map[string]time.Time
}

func newAges() *ages {
	return &ages{
		desc: prometheus.NewDesc("remuda_sweep_age_seconds",
			"Time since this replica's sweep last went well, or was first tried. One replica sweeps at a time: take the least over all.",
			[]string{"sweep"}, nil),
		last: map[string]time.Time{},
	}
}

func (a *ages) swept(sweep string, well bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, tried := a.last[sweep]; well || !tried {
		a.last[sweep] = now
	}
}

// Describe implements prometheus.Collector.
func (a *ages) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

// Collect implements prometheus.Collector.
func (a *ages) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	last := maps.Clone(a.last)
	a.mu.Unlock()
	now := time.Now()
	for sweep, at := range last {
		ch <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, now.Sub(at).Seconds(), sweep)
	}
}

// recentFor is how long a recent gauge keeps its value: several intervals of the sweep that sets it, so that a slow one does not hide it.
const recentFor = 2 * time.Minute

// recent is a gauge that is gone once it was not set for a while, since another replica sets its own then.
type recent struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	value int
	at    time.Time
}

func (r *recent) set(value int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.at = value, now
}

// Describe implements prometheus.Collector.
func (r *recent) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *recent) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < recentFor {
		ch <- gauge(r.desc, r.value)
	}
}

// gauges are replaced all at once, so that a scrape sees those of one count.
type gauges struct {
	descs []*prometheus.Desc

	mu     sync.Mutex
	values []prometheus.Metric
}

func (g *gauges) set(values []prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values = values
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range g.descs {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.values {
		ch <- v
	}
}

func gauge(desc *prometheus.Desc, value int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}

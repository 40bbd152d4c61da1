package fleet_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// dayScrape is where the metrics of the day are kept, for the tests of the alerts and of the dashboard.
const dayScrape = "../../deploy/testdata/working-day.txt.gz"

// scrapes are the metrics of a fleet as Prometheus would read them every minute: the values of each series, "_" where there is none.
type scrapes struct {
	metrics *telemetry.Metrics
	gauges  *instrument.HostGauges
	values  map[string][]string
	count   int
}

func newScrapes(o *fleet.Options) *scrapes {
	s := &scrapes{metrics: telemetry.NewMetrics(), values: map[string][]string{}}
	calls := func(port string) instrument.Calls { return instrument.Calls{Metrics: s.metrics, Port: port} }
	o.Observer = s.metrics
	o.Compute = instrument.Compute{Compute: o.Compute, Calls: calls("compute")}
	o.Queue = instrument.Queue{Queue: o.Queue, Calls: calls("queue")}
	o.GitHub = instrument.GitHub{GitHub: o.GitHub, Calls: calls("github")}
	return s
}

// watch has the gauges count the hosts of the day, as controld does.
func (s *scrapes) watch(d *workday) {
	s.gauges = &instrument.HostGauges{
		Store: d.store, Jobs: d.store, Guards: d.store, WhyWaits: d.fleet.WhyWaits, Requests: d.fleet.WaitingRequests, Services: d.fleet.Services, Pools: []string{"default"},
		Budgets: func() []github.Budget { return []github.Budget{{Credential: "app", Remaining: 4000}} }, CostBudgets: d.fleet.Budgets,
		ClockOffset: func() time.Duration { return 0 }, Metrics: s.metrics, Log: hclog.NewNullLogger(),
	}
}

// take reads all series once.
func (s *scrapes) take() {
	w := httptest.NewRecorder()
	s.gauges.Before(s.metrics.Handler()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if !strings.HasPrefix(line, "remuda_") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		series, value := line[:at], line[at+1:]
		for len(s.values[series]) < s.count {
			s.values[series] = append(s.values[series], "_")
		}
		s.values[series] = append(s.values[series], value)
	}
	s.count++
}

// text has a line for each series: its name and labels, a tab, and its values as promtool reads them, "1x3" for four times 1.
func (s *scrapes) text() string {
	var all strings.Builder
	for _, series := range slices.Sorted(maps.Keys(s.values)) {
		values := s.values[series]
		for len(values) < s.count {
			values = append(values, "_")
		}
		fmt.Fprintf(&all, "%s\t%s\n", series, strings.Join(repeated(values), " "))
	}
	return all.String()
}

// repeated writes what is there several times in a row once.
func repeated(values []string) (short []string) {
	for i := 0; i < len(values); {
		n := i
		for n < len(values) && values[n] == values[i] {
			n++
		}
		if short = append(short, values[i]); n-i > 1 {
			short[len(short)-1] = fmt.Sprintf("%sx%d", values[i], n-i-1)
		}
		i = n
	}
	return short
}

// compareScrapes holds the day's metrics against those that are kept.
func compareScrapes(t *testing.T, s *scrapes) {
	t.Helper()
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = w.Write([]byte(s.text()))
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = os.WriteFile(dayScrape, packed.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.Open(dayScrape)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var have bytes.Buffer
	if _, err := have.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	if have.String() != s.text() {
		t.Errorf("%s differs from the day: write it by go test -update, and run the tests of deploy", dayScrape)
	}
}

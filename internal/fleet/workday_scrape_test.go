package fleet_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// scrapes are the metrics of a fleet as Prometheus would read them every minute: the values of each series, "_" where there is none, and "stale" where
// Prometheus would see that there is none any more.
type scrapes struct {
	metrics *telemetry.Metrics
	gauges  *instrument.HostGauges
	values  map[string][]string
	count   int
	// began is the time of the first scrape: the tests of Prometheus' rules take that for 1970.
	began time.Time
	// faults are those that there were, by the names of the alerts that they are for.
	faults map[string]faultTimes
}

// faultTimes are until when something is wrong, and until when an alert may still fire for it.
type faultTimes struct{ wrong, settles time.Time }

// calls counts the calls of a port.
func (s *scrapes) calls(port string) instrument.Calls {
	return instrument.Calls{Metrics: s.metrics, Port: port}
}

// observe has the metrics count what a fleet does.
func (s *scrapes) observe(o *fleet.Options) {
	o.Observer = s.metrics
	o.Compute = instrument.Compute{Compute: o.Compute, Calls: s.calls("compute")}
	o.Queue = instrument.Queue{Queue: o.Queue, Calls: s.calls("queue")}
	o.GitHub = instrument.GitHub{GitHub: o.GitHub, Calls: s.calls("github")}
}

// take reads all series once.
func (s *scrapes) take() {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	w := httptest.NewRecorder()
	s.gauges.Before(s.metrics.Handler()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if strings.HasPrefix(line, "remuda_") {
			at := strings.LastIndexByte(line, ' ')
			s.add(line[:at], line[at+1:])
		}
	}
	s.miss()
}

// add adds a value of now to a series.
func (s *scrapes) add(series, value string) {
	if strings.Contains(series, "_timestamp_seconds") {
		at, _ := strconv.ParseFloat(value, 64) // Prometheus' own form
		value = strconv.FormatFloat(at-float64(s.began.Unix()), 'f', -1, 64)
	}
	for len(s.values[series]) < s.count {
		s.values[series] = append(s.values[series], "_")
	}
	s.values[series] = append(s.values[series], value)
}

// miss ends a scrape that lacks the series without a value of now.
func (s *scrapes) miss() {
	for alert, until := range s.faults {
		series := fmt.Sprintf("fault{alertname=%q}", alert)
		switch now := time.Now(); {
		case now.Before(until.wrong):
			s.add(series, "2")
		case now.Before(until.settles):
			s.add(series, "1")
		}
	}
	for series, values := range s.values {
		if len(values) > s.count {
			continue
		}
		none := "stale"
		if last := values[len(values)-1]; last == "stale" || last == "_" {
			none = "_"
		}
		s.values[series] = append(values, none)
	}
	s.count++
}

// text has a line for each series: its name and labels, a tab, and its values as promtool reads them: "1x3" is four times 1, and "_x3" three times none.
func (s *scrapes) text() string {
	var all strings.Builder
	for _, series := range slices.Sorted(maps.Keys(s.values)) {
		fmt.Fprintf(&all, "%s\t%s\n", series, strings.Join(repeated(s.values[series]), " "))
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
		switch v := values[i]; {
		case v == "_":
			short = append(short, fmt.Sprintf("_x%d", n-i))
		case n-i > 1 && v != "stale":
			short = append(short, fmt.Sprintf("%sx%d", v, n-i-1))
		default:
			short = append(short, v)
		}
		i = n
	}
	return short
}

// compareScrapes holds the metrics of a day against those that are kept in a file, for the tests of the alerts and of the dashboards.
func compareScrapes(t *testing.T, s *scrapes, path string) {
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
			err = os.WriteFile(path, packed.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.Open(path)
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
		t.Errorf("%s differs from the day: write it by go test -update, and run the tests of deploy", path)
	}
}

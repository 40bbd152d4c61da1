package main

import (
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

const metricsPage = "../docs/metrics.md"

// family is a metric as it is served, or as the page describes it.
type family struct {
	Type, Help string
	Labels     []string
	// values are those of a label that were seen, or that the page lists; a label without a list may have any.
	values map[string][]string
}

// ownOnly leaves out what the client library adds.
func ownOnly(name string) bool { return strings.HasPrefix(name, "remuda_") }

var (
	sample = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	part   = regexp.MustCompile("(?s)\n### `([a-z_]+)`\n\n(Counter|Gauge|Histogram), ([^\n]+)\\.\n\n> ([^\n]+)\n((?:\n- `[a-z_]+`: [^\n]+|\n)*)\n(.*?)\\z")
	listed = regexp.MustCompile("^- `([a-z_]+)`: (.+)$")
	quoted = regexp.MustCompile("`([^`]*)`")
)

// served reads what a scrape has.
func served(text string) map[string]*family {
	families := map[string]*family{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			families[name] = &family{Help: help, values: map[string][]string{}}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			families[name].Type = kind
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f := families[m[1]]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if f == nil {
				f = families[strings.TrimSuffix(m[1], suffix)]
			}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "le" && f.Type == "histogram" {
				continue
			}
			if !slices.Contains(f.Labels, l[1]) {
				f.Labels = append(f.Labels, l[1])
			}
			f.values[l[1]] = append(f.values[l[1]], l[2])
		}
		slices.Sort(f.Labels)
	}
	for name := range families {
		if !ownOnly(name) {
			delete(families, name)
		}
	}
	return families
}

// described reads the page.
func described(t *testing.T) map[string]*family {
	t.Helper()
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*family{}
	parts := regexp.MustCompile(`(?m)^(?:### |## )`).Split(string(text), -1)
	for _, p := range parts {
		if !strings.HasPrefix(p, "`") {
			continue
		}
		m := part.FindStringSubmatch("\n### " + p)
		if m == nil {
			t.Errorf("a part is not of the form of the others: %.80q", p)
			continue
		}
		f := &family{Type: strings.ToLower(m[2]), Help: m[4], values: map[string][]string{}}
		for line := range strings.Lines(m[5]) {
			if l := listed.FindStringSubmatch(strings.TrimSpace(line)); l != nil {
				f.Labels = append(f.Labels, l[1])
				f.values[l[1]] = listOf(l[2])
			}
		}
		slices.Sort(f.Labels)
		if strings.TrimSpace(m[6]) == "" {
			t.Errorf("the page does not say what to do about %s", m[1])
		}
		if families[m[1]] != nil {
			t.Errorf("the page has %s twice", m[1])
		}
		if strings.HasSuffix(strings.TrimSuffix(m[1], "_total"), "_seconds") != strings.HasPrefix(m[3], "seconds") {
			t.Errorf("%s has the unit %s", m[1], m[3])
		}
		families[m[1]] = f
	}
	return families
}

// listOf are the values of a label, if the text is a list of them, with remarks in parentheses.
func listOf(text string) []string {
	bare := regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(text, "")
	if strings.Trim(quoted.ReplaceAllString(bare, ""), ", ") != "" {
		return nil
	}
	var values []string
	for _, m := range quoted.FindAllStringSubmatch(bare, -1) {
		values = append(values, m[1])
	}
	return values
}

// everyMetric is a scrape after each method of the metrics was called once, so that each has a value.
func everyMetric() map[string]*family {
	m := telemetry.NewMetrics()
	v := reflect.ValueOf(m)
	for i := range v.NumMethod() {
		method := v.Method(i)
		if v.Type().Method(i).Name == "Handler" {
			continue
		}
		var args []reflect.Value
		for j := range method.Type().NumIn() {
			args = append(args, something(method.Type().In(j)))
		}
		method.Call(args)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return served(w.Body.String())
}

// something is a value of a type that is not its zero value, where that matters to metrics.
func something(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now()))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(something(t.Elem()))
	case t.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(something(t.Key()), something(t.Elem()))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(something(t.Field(i).Type))
		}
	}
	return v
}

// TestThePageOfMetrics: every metric has its part, every part its metric, and each says what the other says.
func TestThePageOfMetrics(t *testing.T) {
	page, all := described(t), everyMetric()
	for name, f := range all {
		if page[name] == nil {
			t.Errorf("docs/metrics.md has no part for %s, a %s with the labels %v: %s", name, f.Type, f.Labels, f.Help)
		}
	}
	for name, f := range page {
		if all[name] == nil {
			t.Errorf("docs/metrics.md has a part for %s, and there is no such metric", name)
			continue
		}
		if diff := cmp.Diff(all[name], f, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".values" }, cmp.Ignore())); diff != "" {
			t.Errorf("%s (-served +page):\n%s", name, diff)
		}
	}
}

// notInDev are the metrics that have no value in the life of TestMetricsOfADaemon, with the reason.
var notInDev = map[string]string{
	"remuda_requests_waiting":                      "no run waits for hosts then",
	"remuda_machines_gone_total":                   "no machine ends by itself",
	"remuda_runner_version_ends_timestamp_seconds": "the stand-in's runner is new",
	"remuda_service_runners_desired":               "there is no ECS",
	"remuda_service_runners_running":               "there is no ECS",
}

// metered uses what has metrics.
const metered = `services: {jobs: {}}
pools: {small: {jobs: {labels: [small], maximum: 2, repositories: ["acme/*"]}}}
sweeps: {liveness: 1s, cloud: 2s}
limits: {budgets: [{owner: acme, dollars_per_month: 1000000}]}
cost: {prices: [{instance_type: "*", dollars_per_hour: 1}]}
`

// TestMetricsOfADaemon: a daemon that has served runs and a job of a job pool serves what the page says, and no other values of labels than it lists.
func TestMetricsOfADaemon(t *testing.T) {
	t.Parallel()
	s := startDev(t, metered)
	for _, run := range []string{"401", "402"} {
		s.provision(run)
		s.job(run, "true")
		s.release(run)
	}
	workflow := "on: push\njobs:\n  only:\n    runs-on: small\n    steps:\n      - run: \"true\"\n"
	if _, err := s.GitHub.StartRun(s.ctx, repository, "403", workflow); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GitHub.WaitRun(s.ctx, "403", nil); err != nil {
		t.Fatal(err)
	}
	// A job of these three waits, since the pool has two hosts, and the job of the last is misspelled.
	for run, workflow := range map[string]string{
		"404": "on: push\njobs:\n  long:\n    strategy: {matrix: {n: [1, 2, 3]}}\n    runs-on: small\n    steps:\n      - run: sleep 300\n",
		"405": "on: push\njobs:\n  only:\n    runs-on: smal\n    steps:\n      - run: \"true\"\n",
	} {
		if _, err := s.GitHub.StartRun(s.ctx, repository, run, workflow); err != nil {
			t.Fatal(err)
		}
	}
	page, seen := described(t), map[string]*family{}
	for missing := []string{""}; len(missing) > 0; time.Sleep(100 * time.Millisecond) { // hosts are counted every 30 s
		seen, missing = served(s.get("/metrics")), nil
		for name := range page {
			if seen[name] == nil && notInDev[name] == "" {
				missing = append(missing, name)
			}
		}
		if s.ctx.Err() != nil {
			t.Fatalf("a daemon does not serve %v", missing)
		}
	}
	for name, f := range seen {
		of := page[name]
		if of == nil || notInDev[name] != "" {
			t.Errorf("%s is served: docs/metrics.md has a part: %t; it is said to have no value here: %q", name, of != nil, notInDev[name])
			continue
		}
		if diff := cmp.Diff(f, of, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".values" }, cmp.Ignore())); diff != "" {
			t.Errorf("%s (-served +page):\n%s", name, diff)
		}
		for label, values := range f.values {
			for _, value := range values {
				if list := of.values[label]; list != nil && !slices.Contains(list, value) {
					t.Errorf("%s has %s=%q, which docs/metrics.md does not list", name, label, value)
				}
			}
		}
	}
}

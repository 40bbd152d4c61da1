package deploy_test

import (
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The recorded day: what a fleet with a warm pool and scale-down served as metrics, every minute of a working day that internal/fleet simulates
// (TestAWorkingDay writes it, and holds it against the day at each run).
const (
	dayScrape  = "testdata/working-day.txt.gz"
	dayMinutes = "24h"
)

// inputSeries is a series as promtool's tests have it.
type inputSeries struct {
	Series, Values string
}

// readDay are the series of the recorded day, and the names of their metrics.
func readDay(t *testing.T) (all []inputSeries, names map[string]bool) {
	t.Helper()
	file, err := os.Open(dayScrape)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	for line := range strings.Lines(string(text)) {
		series, values, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			t.Fatalf("%s has the line %.80q", dayScrape, line)
		}
		name, labels, labeled := strings.Cut(series, "{")
		names[strings.TrimSuffix(name, "_bucket")] = true
		if !labeled {
			labels = "}"
		}
		all = append(all, inputSeries{name + `{instance="a",` + labels, values})
	}
	if len(all) < 100 {
		t.Fatalf("%s has %d series", dayScrape, len(all))
	}
	return all, names
}

// evaluate has promtool answer questions about the day.
func evaluate(t *testing.T, day []inputSeries, questions []map[string]any, ruleFiles ...string) {
	t.Helper()
	for i, path := range ruleFiles {
		whole, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		ruleFiles[i] = whole
	}
	text, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "rule_files": ruleFiles, "tests": []any{
		map[string]any{"interval": "1m", "input_series": day, "promql_expr_test": questions},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "day.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

// TestNoAlertOnTheRecordedDay: none fires at any minute of it. The same day with a sweep that stands still has one fire.
func TestNoAlertOnTheRecordedDay(t *testing.T) {
	day, _ := readDay(t)
	fired := func(want float64) []map[string]any {
		return []map[string]any{{
			"expr": `sum(count_over_time(ALERTS{alertstate="firing"}[` + dayMinutes + `])) > bool 0 or vector(0)`, "eval_time": dayMinutes,
			"exp_samples": []any{map[string]any{"labels": "{}", "value": want}},
		}}
	}
	evaluate(t, day, fired(0), alerts)
	bad := slices.Clone(day)
	i := slices.IndexFunc(bad, func(s inputSeries) bool {
		return strings.HasPrefix(s.Series, `remuda_sweep_age_seconds{instance="a",sweep="due"`)
	})
	if i < 0 {
		t.Fatal("the day has no age of the due sweep")
	}
	bad[i].Values = "1x720 0+60x719"
	evaluate(t, bad, fired(1), alerts)
}

// notOnTheDay are the metrics that the recorded fleet has no reason to serve: it has no callers over gRPC, job pools, services or budgets, and no machine of it is lost.
var notOnTheDay = []string{
	"remuda_budget_used_ratio", "remuda_grpc_request_duration_seconds", "remuda_job_queue_duration_seconds", "remuda_jobs_waiting", "remuda_jobs_waiting_reason",
	"remuda_machines_gone_total", "remuda_service_jobs_waiting", "remuda_service_runners_desired", "remuda_service_runners_running",
	"remuda_service_workers_offline", "remuda_service_workers_online", "remuda_turns_open",
}

// onlyOfFaults has the expressions that a good day has no answer to.
const onlyOfFaults = `result=~"unavailable|timeout|error"`

// morning is how long after the beginning of the day the rush of the morning is.
const morning = "5h30m"

// TestTheDashboardOfTheRecordedDay: each of its expressions has an answer in the morning, except those about what the fleet lacks.
func TestTheDashboardOfTheRecordedDay(t *testing.T) {
	day, names := readDay(t)
	var questions []map[string]any
	absent := map[string]bool{}
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			lacks := slices.DeleteFunc(metricsOf(target.Expr), func(name string) bool { return names[name] })
			for _, name := range lacks {
				absent[name] = true
			}
			if len(lacks) > 0 {
				continue
			}
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			answer := []any{map[string]any{"labels": "{}", "value": 1}}
			if strings.Contains(expr, onlyOfFaults) {
				answer = nil
			}
			questions = append(questions, map[string]any{"expr": "count(" + expr + ") > bool 0", "eval_time": morning, "exp_samples": answer})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		if !slices.Contains(notOnTheDay, name) {
			t.Errorf("the dashboard asks for %s, which the recorded day lacks", name)
		}
	}
	for _, name := range notOnTheDay {
		if !absent[name] {
			t.Errorf("%s is on the recorded day, or the dashboard does not ask for it: take it off the list", name)
		}
	}
	if len(questions) < 10 {
		t.Errorf("only %d expressions can be asked", len(questions))
	}
	evaluate(t, day, questions)
}

// pageExpression is an expression in the table of questions on the page of metrics, where a pipe has a backslash.
var pageExpression = regexp.MustCompile("`([^`]*remuda_[^`]*)`")

// pageExpressions are the expressions of the table of questions, as Prometheus takes them.
func pageExpressions(t *testing.T) (all []string) {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "../docs/metrics.md"), "| question | expression |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		for _, m := range pageExpression.FindAllStringSubmatch(line, -1) {
			all = append(all, strings.ReplaceAll(m[1], `\|`, "|"))
		}
	}
	if len(all) < 8 {
		t.Fatalf("the page of metrics has %d expressions: %q", len(all), all)
	}
	return all
}

// TestThePageOfTheRecordedDay: each expression of the page of metrics has an answer in the morning, except those that find what is wrong.
func TestThePageOfTheRecordedDay(t *testing.T) {
	day, names := readDay(t)
	page := readMetrics(t)
	var questions []map[string]any
	for _, expr := range pageExpressions(t) {
		page.check("docs/metrics.md", expr)
		answer := []any{map[string]any{"labels": "{}", "value": 1}}
		if strings.Contains(expr, onlyOfFaults) || strings.HasSuffix(expr, "> 900") {
			answer = nil
		}
		if lacks := slices.DeleteFunc(metricsOf(expr), func(name string) bool { return names[name] }); len(lacks) > 0 {
			if slices.ContainsFunc(lacks, func(name string) bool { return !slices.Contains(notOnTheDay, name) }) {
				t.Errorf("%s asks for %v, which the recorded day lacks", expr, lacks)
			}
			answer = nil // Prometheus still has to take it
		}
		questions = append(questions, map[string]any{"expr": "count(" + expr + ") > bool 0", "eval_time": morning, "exp_samples": answer})
	}
	evaluate(t, day, questions)
}

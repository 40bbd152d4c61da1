package deploy_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The recorded days: what a fleet with all that has metrics served, every minute of a day that internal/fleet simulates. On the good one a machine is
// lost and a pool is full for some minutes, as on any; on the bad one there is a fault for each alert. TestAGoodDay and TestABadDay write them, and
// hold them against the days at each run.
const (
	goodDay    = "testdata/good-day.txt.gz"
	badDay     = "testdata/bad-day.txt.gz"
	dayMinutes = "24h"
)

// inputSeries is a series as promtool's tests have it.
type inputSeries struct {
	Series, Values string
}

// readDay are the series of a recorded day, and the names of their metrics.
func readDay(t *testing.T, path string) (all []inputSeries, names map[string]bool) {
	t.Helper()
	file, err := os.Open(path)
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
			t.Fatalf("%s has the line %.80q", path, line)
		}
		name, labels, labeled := strings.Cut(series, "{")
		if name == faultSeries {
			all = append(all, inputSeries{series, values})
			continue
		}
		names[strings.TrimSuffix(name, "_bucket")] = true
		if !labeled {
			labels = "}"
		}
		all = append(all, inputSeries{name + `{instance="a",` + labels, values})
	}
	if len(all) < 100 {
		t.Fatalf("%s has %d series", path, len(all))
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

// faultSeries is 2 while, on the bad day, what an alert is about is wrong, and 1 for some minutes after it, in which the alert may still fire. Its
// label is the alert's name.
const faultSeries = "fault"

// asked is a question with one answer, a number.
func asked(expr string, want float64) map[string]any {
	return map[string]any{"expr": expr, "eval_time": dayMinutes, "exp_samples": []any{map[string]any{"labels": "{}", "value": want}}}
}

// TestNoAlertOnTheGoodDay: none fires at any minute of it.
func TestNoAlertOnTheGoodDay(t *testing.T) {
	day, _ := readDay(t, goodDay)
	evaluate(t, day, []map[string]any{asked(`sum(count_over_time(ALERTS{alertstate="firing"}[`+dayMinutes+`])) > bool 0 or vector(0)`, 0)}, alerts)
}

// TestEveryAlertOnTheBadDay: each fires for its fault, still does as the fault ends, and fires at no other time.
func TestEveryAlertOnTheBadDay(t *testing.T) {
	day, _ := readDay(t, badDay)
	var questions []map[string]any
	for _, a := range readAlerts(t) {
		firing := fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, a.Alert)
		fault := fmt.Sprintf(`%s{alertname=%q}`, faultSeries, a.Alert)
		ever := func(expr string, want float64) {
			questions = append(questions, asked(fmt.Sprintf("count(count_over_time((%s)[%s:1m])) > bool 0 or vector(0)", expr, dayMinutes), want))
		}
		ever(firing+" unless on (alertname) "+fault, 0)
		ever(fmt.Sprintf("((%s == 2) unless (%s offset -1m == 2)) and on (alertname) %s", fault, fault, firing), 1)
	}
	evaluate(t, day, questions, alerts)
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

// morning is the end of half an hour in which much goes on. The days begin at four.
const morning = "5h40m"

// onlyOfFaults reports whether an expression finds what is wrong, and nothing else.
func onlyOfFaults(expr string) bool {
	return strings.Contains(expr, `result=~"unavailable|timeout|error"`) && !strings.Contains(expr, "or vector(0)") || strings.HasSuffix(expr, "> 900")
}

// TestEveryExpressionOfTheRecordedDays: those of the dashboards and of the page of metrics have an answer at some time in the morning of the good day, and so have
// all metrics of the dashboards. Those that find what is wrong have none then, and one on the bad day.
func TestEveryExpressionOfTheRecordedDays(t *testing.T) {
	good, names := readDay(t, goodDay)
	bad, _ := readDay(t, badDay)
	page := readMetrics(t)
	var ofGood, ofBad []map[string]any
	ask := func(of, expr string) {
		page.check(of, expr)
		for _, name := range metricsOf(expr) {
			if !names[name] {
				t.Errorf("%s asks for %s, which the recorded day lacks: have the day do what it counts (TestAGoodDay)", of, name)
			}
		}
		expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
		step := "1m"
		if strings.Contains(expr, "_bucket") { // promtool bounds the samples of a question
			step = "5m"
		}
		question := asked("max_over_time((count("+expr+") > bool 0)[30m:"+step+"])", 1)
		question["eval_time"] = morning
		if onlyOfFaults(expr) {
			ofBad = append(ofBad, asked("max_over_time((count("+expr+") > bool 0)["+dayMinutes+":5m])", 1))
			question["exp_samples"] = nil
		}
		ofGood = append(ofGood, question)
	}
	for _, expr := range pageExpressions(t) {
		ask("docs/metrics.md", expr)
	}
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			ask(p.Title, target.Expr)
		}
	}
	if len(ofGood) < 60 || len(ofBad) < 3 {
		t.Errorf("%d expressions are asked, and %d about faults", len(ofGood), len(ofBad))
	}
	evaluate(t, good, ofGood)
	evaluate(t, bad, ofBad)
}

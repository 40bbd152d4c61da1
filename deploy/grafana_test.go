package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// panel is one panel of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat string }
}

func readPanels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "grafana/remuda.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

var legend = regexp.MustCompile(`{{([a-z]+)}}`)

// TestDashboard: each panel says what it shows, asks for what the page of metrics has, names lines by labels that its expression keeps, and overlaps no other.
func TestDashboard(t *testing.T) {
	page, ids, taken, lines := readMetrics(t), map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range readPanels(t) {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && p.Description == "" {
			t.Errorf("panel %d %q needs an id of its own, a title and a description", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q is over %q, or beyond the 24 columns", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			lines++
			page.check(p.Title, target.Expr)
			for _, l := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b`+l[1]+`\b`).MatchString(target.Expr) && l[1] != "instance" {
					t.Errorf("%q names lines by %s, which %s does not keep", p.Title, l[1], target.Expr)
				}
			}
		}
	}
	if lines == 0 {
		t.Error("the dashboard shows nothing")
	}
}

// TestDashboardIsEvaluated: by the engine of Prometheus, each expression has an answer when controld serves what the page of metrics says.
func TestDashboardIsEvaluated(t *testing.T) {
	type series struct {
		Series, Values string
	}
	type sample struct {
		Labels string
		Value  float64
	}
	type question struct {
		Expr       string
		EvalTime   string   `yaml:"eval_time"`
		ExpSamples []sample `yaml:"exp_samples"`
	}
	type test struct {
		Interval       string
		InputSeries    []series   `yaml:"input_series"`
		PromqlExprTest []question `yaml:"promql_expr_test"`
	}
	page, given, all := readMetrics(t), map[string]bool{}, test{Interval: "1m"}
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			for _, name := range metricsOf(target.Expr) {
				if given[name] {
					continue
				}
				given[name] = true
				for _, s := range page.series(name) {
					all.InputSeries = append(all.InputSeries, series{s, "0+1x60"})
				}
			}
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			all.PromqlExprTest = append(all.PromqlExprTest, question{"count(" + expr + ") > bool 0", "30m", []sample{{"{}", 1}}})
		}
	}
	text, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []test{all}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

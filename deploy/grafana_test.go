package deploy_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	grafanaDir = "grafana/"
	// boardTag is on each dashboard, and each has a link to all that have it.
	boardTag = "remuda"
)

// panel is one panel of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat string }
}

// boardFiles are the files of the dashboards.
func boardFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(grafanaDir + "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	return files
}

func panelsOf(t *testing.T, file string) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, file)), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// readPanels are those of all dashboards.
func readPanels(t *testing.T) (all []panel) {
	t.Helper()
	for _, file := range boardFiles(t) {
		all = append(all, panelsOf(t, file)...)
	}
	return all
}

var legend = regexp.MustCompile(`{{([a-z_]+)}}`)

// The bounds of a dashboard: each panel asks Prometheus on its own at every refresh, and people look for one among them.
const (
	mostPanels = 30
	mostBytes  = 64 << 10
)

// TestTheSchemaOfTheDashboards: Grafana's own library takes each file, with no field that it does not know and none missing. Each has an id of its
// own, which links go by, and a link to the others that keeps the time and the data source.
func TestTheSchemaOfTheDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	seen := map[string]bool{}
	for _, file := range boardFiles(t) {
		var d dashboard.Dashboard //lint:ignore SA1019 the form of Grafana 10 and 11, which newer ones take too
		text := read(t, file)
		var wrong cog.BuildErrors // the library returns an empty list where nothing is wrong
		if err := d.UnmarshalJSONStrict([]byte(text)); !errors.As(err, &wrong) || len(wrong) > 0 {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if d.Uid == nil || seen[*d.Uid] || !slices.Contains(d.Tags, boardTag) || d.Id != nil {
			t.Errorf("%s needs a uid of its own, the tag %s, and no id", file, boardTag)
			continue
		}
		seen[*d.Uid] = true
		if !slices.ContainsFunc(d.Links, func(l dashboard.DashboardLink) bool {
			return l.Type == dashboard.DashboardLinkTypeDashboards && slices.Equal(l.Tags, []string{boardTag}) && l.KeepTime && l.IncludeVars
		}) {
			t.Errorf("%s has no link to the others", file)
		}
		if n := len(d.Panels); n > mostPanels || len(text) > mostBytes {
			t.Errorf("%s has %d panels and %d bytes; %d and %d are enough", file, n, len(text), mostPanels, mostBytes)
		}
	}
	if len(seen) != len(boards) {
		t.Errorf("there are %d dashboards in deploy/grafana, and %d in boards", len(seen), len(boards))
	}
}

// TestDashboard: each panel says what it shows, asks for what the page of metrics has, names lines by labels that its expression keeps, and overlaps no other.
func TestDashboard(t *testing.T) {
	page := readMetrics(t)
	for _, file := range boardFiles(t) {
		ids, taken, lines := map[int]bool{}, map[[2]int]string{}, 0
		for _, p := range panelsOf(t, file) {
			if ids[p.ID] || p.ID == 0 || p.Title == "" || p.Type != "row" && p.Description == "" {
				t.Errorf("%s: panel %d %q needs an id of its own, a title and a description", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q is over %q, or beyond the 24 columns", file, p.Title, other)
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
			t.Errorf("%s shows nothing", file)
		}
	}
}

// TestEveryMetricHasAPanel: what is on the page of metrics is on a dashboard.
func TestEveryMetricHasAPanel(t *testing.T) {
	var shown []string
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			shown = append(shown, metricsOf(target.Expr)...)
		}
	}
	for name := range readMetrics(t).parts {
		if strings.HasPrefix(name, "remuda_") && !slices.Contains(shown, name) {
			t.Errorf("no panel shows %s: give it one in boards (dashboards_test.go)", name)
		}
	}
}

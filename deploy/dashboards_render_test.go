package deploy_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

var update = flag.Bool("update", false, "write deploy/grafana")

// grafanaSchema is the version of the form of a dashboard: that of Grafana 10, which newer ones take as well.
const grafanaSchema = 39

// The size of panels. A dashboard is 24 wide.
const (
	chartWide, chartHigh   = 8, 8
	numberWide, numberHigh = 4, 4
)

// source is the data source that the reader chooses.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// TestTheDashboardsAreWritten: the files of deploy/grafana are the dashboards of this package, in the form that Grafana's own library gives them.
func TestTheDashboardsAreWritten(t *testing.T) {
	for _, b := range boards {
		built, err := b.builder().Build()
		if err != nil {
			t.Fatalf("%s: %v", b.file, err)
		}
		built.SchemaVersion = grafanaSchema
		built.Links[0].Placement = nil // it would be in a menu
		text, err := json.MarshalIndent(built, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		path, text := grafanaDir+b.file, append(text, '\n')
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(read(t, path), string(text)); diff != "" {
			t.Errorf("%s differs; look at it after go test -update (-have +want):\n%s", path, diff)
		}
	}
}

//lint:ignore SA1019 what it is deprecated for is the form of Grafana 12, which older ones do not take
func (b board) builder() *dashboard.DashboardBuilder {
	//lint:ignore SA1019 see above
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.says+" See docs/metrics.md.").Tags([]string{boardTag, "github-actions"}).
		Timezone("browser").Time(b.from, "now").Refresh("1m").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Annotations(nil).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		Link(dashboard.NewDashboardLinkBuilder("Remuda").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{boardTag}).KeepTime(true).IncludeVars(true))
	at := dashboard.GridPos{}
	id := uint32(1)
	for _, s := range b.sections {
		d.WithRow(dashboard.NewRowBuilder(s.title).Id(id).GridPos(dashboard.GridPos{Y: at.Y, W: 24, H: 1}))
		id++
		at.X, at.Y = 0, at.Y+1
		for _, c := range s.charts {
			at.W, at.H = c.size(len(s.charts))
			if at.X+at.W > 24 {
				at.X, at.Y = 0, at.Y+at.H
			}
			d.WithPanel(c.panel(id, at))
			id++
			at.X += at.W
		}
		at.Y += at.H
	}
	return d
}

// size is that of a panel among so many of its row.
func (c chart) size(of int) (wide, high uint32) {
	switch {
	case c.kind == "number":
		return numberWide * 6 / uint32(max(of, 4)), numberHigh
	case of <= 2:
		return 24 / uint32(of), chartHigh
	case of == 4:
		return 12, chartHigh
	}
	return chartWide, chartHigh
}

func (c chart) panel(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	var queries []cog.Builder[variants.Dataquery]
	for i, q := range c.queries {
		b := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Expr(q.expr).Datasource(source)
		if q.legend != "" {
			b.LegendFormat(q.legend)
		}
		queries = append(queries, b)
	}
	if c.kind == "number" {
		return stat.NewPanelBuilder().Id(id).GridPos(at).Title(c.title).Description(c.says).Datasource(source).Unit(c.unit).Targets(queries).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
			Orientation(common.VizOrientationAuto).ColorMode(common.BigValueColorModeNone).GraphMode(common.BigValueGraphModeArea)
	}
	p := timeseries.NewPanelBuilder().Id(id).GridPos(at).Title(c.title).Description(c.says).Datasource(source).Unit(c.unit).Min(0).Targets(queries).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if c.kind == "stack" {
		p.FillOpacity(20).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	return p
}

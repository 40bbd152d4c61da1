package forecast

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/replay"
)

// The size of a picture, and where its charts are in it, in pixels.
const (
	picWidth           = 960
	picLeft, picRight  = 64, 936
	chartHeight        = 150
	chartRoom          = chartHeight + 72
	barHeight, barRoom = 18, 30
)

// picStyle has the colors, on a light and on a dark background.
const picStyle = `<style>
  .paper { fill: #ffffff } text { fill: #24292f } .quiet { fill: #57606a } .grid { stroke: #d8dee4 } .jobs { fill: #c8d1da; stroke: none }
  .running { stroke: #0b62c4 } .waiting { stroke: #c25e00 } .used { fill: #0b62c4 } .pool { fill: #c8d1da }
  .line { fill: none; stroke-width: 1.5; stroke-linejoin: round }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #9198a1 } .grid { stroke: #2b323b } .jobs { fill: #3d4855 }
    .running { stroke: #58a6ff } .waiting { stroke: #f0883e } .used { fill: #58a6ff } .pool { fill: #3d4855 }
  }
</style>`

// Picture draws a report as SVG: the machines and jobs under each policy that was played, and what each policy costs.
func (r *Report) Picture(w io.Writer) error {
	var b strings.Builder
	played := r.played()
	height := 84 + len(played)*chartRoom + 40 + len(r.Columns)*barRoom
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`, picWidth, height)
	line(`<title>%d recorded jobs, played with a policy</title>`, r.Jobs)
	line("%s", picStyle)
	line(`<rect class="paper" width="%d" height="%d"/>`, picWidth, height)
	line(`<text x="%d" y="32" font-size="18" font-weight="600">%s, from %s to %s</text>`,
		picLeft, r.title(), r.From.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	legend(&b, 56)
	lines, step := r.axis(played)
	top := 100
	for _, i := range played {
		c := r.Columns[i]
		heading(&b, top-10, c.Name, fmt.Sprintf("half of the jobs waited at most %s, 95 of a hundred %s, 99 of a hundred %s",
			seconds(c.Waits.P50), seconds(c.Waits.P95), seconds(c.Waits.P99)))
		chart{top: top, lines: lines, step: step, series: r.outcomes[i].Series}.draw(&b)
		top += chartRoom
	}
	r.bars(&b, top)
	line(`</svg>`)
	_, err := io.WriteString(w, b.String())
	return err
}

// played are the columns that were played, by number.
func (r *Report) played() (columns []int) {
	for i, o := range r.outcomes {
		if len(o.Series.Up) > 0 {
			columns = append(columns, i)
		}
	}
	return columns
}

// axis is how many lines the charts have above the one of nothing, and what is between two of them.
func (r *Report) axis(columns []int) (lines int, step float64) {
	most := 1.0
	for _, i := range columns {
		s := r.outcomes[i].Series
		for n := range s.Up {
			most = max(most, s.Up[n], s.Busy[n]+s.Waiting[n])
		}
	}
	step = stepOf(most)
	return int(math.Ceil(most / step)), step
}

// stepOf is between two lines of a chart that has so much: 1, 2 or 5 with zeros, for four lines or a few more.
func stepOf(most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, factor := range []float64{1, 2, 5} {
		if most/(factor*power) <= 6 {
			return factor * power
		}
	}
	return 10 * power
}

func legend(b *strings.Builder, y int) {
	x := picLeft
	for _, l := range []struct{ mark, says string }{
		{`<rect class="jobs" x="%d" y="%d" width="22" height="12"/>`, "jobs that run"},
		{`<path class="line running" d="M%d %dm0 6h22"/>`, "machines"},
		{`<path class="line waiting" d="M%d %dm0 6h22"/>`, "jobs that run or wait for a host"},
	} {
		fmt.Fprintf(b, l.mark+`<text x="%d" y="%d">%s</text>`+"\n", x, y-10, x+30, y, l.says)
		x += 60 + 7*len(l.says)
	}
}

func heading(b *strings.Builder, y int, name, says string) {
	fmt.Fprintf(b, `<text x="%d" y="%d"><tspan font-weight="600">%s</tspan><tspan class="quiet" dx="10">%s</tspan></text>`+"\n",
		picLeft, y, html.EscapeString(name), says)
}

// chart is what there was under a policy over time.
type chart struct {
	top    int
	lines  int
	step   float64
	series replay.Series
}

func (c chart) bottom() int { return c.top + chartHeight }

func (c chart) x(part int) float64 {
	return picLeft + float64(picRight-picLeft)*float64(part)/float64(max(1, len(c.series.Up)))
}

func (c chart) y(v float64) float64 {
	return float64(c.bottom()) - chartHeight*v/(float64(c.lines)*c.step)
}

func (c chart) draw(b *strings.Builder) {
	for n := range c.lines + 1 {
		v := math.Round(float64(n)*c.step*100) / 100 // a multiple of 0.2 has more digits
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/><text class="quiet" x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			picLeft, c.y(v), picRight, picLeft-8, c.y(v)+4, v)
	}
	c.times(b)
	demand := make([]float64, len(c.series.Busy))
	for i := range demand {
		demand[i] = c.series.Busy[i] + c.series.Waiting[i]
	}
	fmt.Fprintf(b, `<path class="jobs" d="%sV%dH%dZ"/>`+"\n", c.steps(c.series.Busy), c.bottom(), picLeft)
	fmt.Fprintf(b, `<path class="line waiting" d="%s"/>`+"\n", c.steps(demand))
	fmt.Fprintf(b, `<path class="line running" d="%s"/>`+"\n", c.steps(c.series.Up))
}

// steps are means as a path: each holds for its part.
func (c chart) steps(means []float64) string {
	var path strings.Builder
	for i, v := range means {
		if i == 0 {
			fmt.Fprintf(&path, "M%d %.1f", picLeft, c.y(v))
		} else {
			fmt.Fprintf(&path, "V%.1f", c.y(v))
		}
		fmt.Fprintf(&path, "H%.1f", c.x(i+1))
	}
	return path.String()
}

// times writes hours of the day or days below the chart, in UTC.
func (c chart) times(b *strings.Builder) {
	each, layout := 2*time.Hour, "15:04"
	if whole := c.series.Step * time.Duration(len(c.series.Up)); whole > 36*time.Hour {
		day := 24 * time.Hour
		each, layout = day*((whole/12+day-1)/day), "2 Jan"
	}
	for i := range c.series.Up {
		if at := c.series.Begin.Add(time.Duration(i) * c.series.Step); at.Equal(at.Truncate(each)) {
			fmt.Fprintf(b, `<text class="quiet" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", c.x(i), c.bottom()+18, at.UTC().Format(layout))
		}
	}
}

// bars draws what each policy costs: what repositories used, and what the pools waited.
func (r *Report) bars(b *strings.Builder, top int) {
	heading(b, top-10, "Dollars", "of jobs, from launch or claim to their end, and, paler, of hosts that wait, are cleaned or boot ahead of need")
	most := 0.01
	for _, c := range r.Columns {
		most = max(most, c.Dollars)
	}
	const left, right = picLeft + 130, picRight - 110
	for i, c := range r.Columns {
		y := top + i*barRoom
		waiting := r.Repositories[len(r.Repositories)-1].Under[i].Dollars
		used := (right - left) * (c.Dollars - waiting) / most
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect class="used" x="%d" y="%d" width="%.1f" height="%d"/>`,
			left-8, y+14, html.EscapeString(c.Name), left, y, used, barHeight)
		fmt.Fprintf(b, `<rect class="pool" x="%.1f" y="%d" width="%.1f" height="%d"/><text x="%.1f" y="%d">$%.2f</text>`+"\n",
			left+used, y, (right-left)*waiting/most, barHeight, left+(right-left)*c.Dollars/most+8, y+14, c.Dollars)
	}
}

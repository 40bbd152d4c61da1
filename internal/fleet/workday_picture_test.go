package fleet_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
)

// The size of the picture, and where its charts are in it, in pixels.
const (
	picWidth, picHeight = 960, 830
	picLeft, picRight   = 64, 936
)

// picStyle has the colours, on a light and on a dark background.
const picStyle = `<style>
  .paper { fill: #ffffff } text { fill: #24292f } .quiet { fill: #57606a } .grid { stroke: #d8dee4 } .plan { fill: #f5d9b0 }
  .demand { fill: #c8d1da; stroke: none } .running { stroke: #0b62c4 } .idle { stroke: #c25e00 } .without { stroke: #57606a }
  .line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .dashed { stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #9198a1 } .grid { stroke: #2b323b } .plan { fill: #5a3c12 }
    .demand { fill: #3d4855 } .running { stroke: #58a6ff } .idle { stroke: #f0883e } .without { stroke: #b1bac4 }
  }
</style>`

// drawDay draws the two days below each other, and what they cost.
func drawDay(with, without *workday, prices cost.Prices) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`, picWidth, picHeight)
	line(`<title>A working day with a warm pool and without one</title>`)
	line("%s", picStyle)
	line(`<rect class="paper" width="%d" height="%d"/>`, picWidth, picHeight)
	line(`<text x="%d" y="32" font-size="18" font-weight="600">One working day, twice: %d runs of %d jobs</text>`, picLeft, len(with.waits), dayJobs)
	legend(&b, 56)

	most := float64(max(with.most(), without.most())/10*10 + 10)
	for _, c := range []struct {
		day       *workday
		top       int
		name, how string
	}{
		{with, 122, "With a warm pool", "fresh hosts by two schedules, zero at night"},
		{without, 384, "Without a pool", "a new host for each job"},
	} {
		hosts := chart{top: c.top, bottom: c.top + 188, most: most, from: c.day.looks[0].at}
		heading(&b, c.top-18, c.name, fmt.Sprintf("%s; %d %% of the runs had their hosts within %s, half of them within %s",
			c.how, 100*c.day.within(soon)/len(c.day.waits), soon, c.day.waited(50)))
		hosts.axes(&b, 10, "hosts")
		if c.day == with {
			hosts.plans(&b)
		}
		hosts.area(&b, c.day.looks, func(l dayLook) float64 { return float64(l.wanted) })
		hosts.curve(&b, "running", c.day.looks, func(l dayLook) float64 { return float64(l.up) })
		if c.day == with {
			hosts.curve(&b, "idle", c.day.looks, func(l dayLook) float64 { return float64(l.idle) })
		}
	}

	heading(&b, 628, "Cost of the machines so far", fmt.Sprintf("$%.2f with the pool and $%.2f without: %.0f and %.0f hours of %s at $%.4f",
		with.dollars(prices), without.dollars(prices), with.spent().Hours(), without.spent().Hours(), prices.MachineType, prices.Machine))
	dollars := func(l dayLook) float64 { return l.spent.Hours() * prices.Machine }
	total := chart{top: 646, bottom: 776, most: float64(int(with.dollars(prices))/5*5 + 5), from: with.looks[0].at}
	total.axes(&b, 5, "dollars")
	total.curve(&b, "running", with.looks, dollars)
	total.curve(&b, "without dashed", without.looks, dollars)
	total.label(&b, "with", dollars(with.looks[len(with.looks)-1]))
	total.label(&b, "without", dollars(without.looks[len(without.looks)-1]))
	line(`<text class="quiet" x="%d" y="%d" text-anchor="end">time of day in %s</text>`, picRight, picHeight-14, dayZone)
	line(`</svg>`)
	return b.String()
}

// legend says what the curves are.
func legend(b *strings.Builder, y int) {
	x := picLeft
	for _, l := range []struct{ mark, says string }{
		{`<rect class="demand" x="%d" y="%d" width="22" height="12"/>`, "demand: jobs that wait for a host or run on one"},
		{`<path class="line running" d="M%d %dm0 6h22"/>`, "running machines"},
		{`<path class="line idle" d="M%d %dm0 6h22"/>`, "idle ones among them, ready for a run"},
	} {
		fmt.Fprintf(b, l.mark+`<text x="%d" y="%d">%s</text>`+"\n", x, y-10, x+30, y, l.says)
		x += 50 + 7*len(l.says)
	}
}

func heading(b *strings.Builder, y int, name, says string) {
	fmt.Fprintf(b, `<text x="%d" y="%d"><tspan font-weight="600">%s</tspan><tspan class="quiet" dx="10">%s</tspan></text>`+"\n", picLeft, y, name, says)
}

// chart is a part of the picture over the hours of the day.
type chart struct {
	top, bottom int
	most        float64
	from        time.Time
}

func (c chart) x(hours float64) float64 { return picLeft + float64(picRight-picLeft)*hours/24 }

func (c chart) y(v float64) float64 { return float64(c.bottom) - float64(c.bottom-c.top)*v/c.most }

// axes draws lines at multiples of step, and the hours below.
func (c chart) axes(b *strings.Builder, step float64, unit string) {
	for v := 0.0; v <= c.most; v += step {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/><text class="quiet" x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			picLeft, c.y(v), picRight, picLeft-8, c.y(v)+4, v)
	}
	middle := (c.top + c.bottom) / 2
	fmt.Fprintf(b, `<text class="quiet" x="20" y="%d" text-anchor="middle" transform="rotate(-90 20 %d)">%s</text>`+"\n", middle, middle, unit)
	for hours := 0; hours <= 24; hours += 2 {
		fmt.Fprintf(b, `<text class="quiet" x="%.1f" y="%d" text-anchor="middle">%d:00</text>`+"\n", c.x(float64(hours)), c.bottom+18, (c.from.Hour()+hours)%24)
	}
}

// plans shows how many fresh hosts are wanted when.
func (c chart) plans(b *strings.Builder) {
	for _, s := range daySchedules {
		from, to := c.x(float64(s.from-c.from.Hour())), c.x(float64(s.to-c.from.Hour()))
		fmt.Fprintf(b, `<rect class="plan" x="%.1f" y="%d" width="%.1f" height="16"/>`, from+1, c.top-6, to-from-2)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" font-size="11" text-anchor="middle">%d fresh hosts</text>`+"\n", (from+to)/2, c.top+6, s.idle)
	}
}

// meanOf is how many looks are one point of a curve.
const meanOf = 5

// points are the means of the looks, as a path.
func (c chart) points(looks []dayLook, value func(dayLook) float64) string {
	var path strings.Builder
	letter := "M"
	for i := 0; i+meanOf <= len(looks); i += meanOf {
		sum := 0.0
		for _, l := range looks[i : i+meanOf] {
			sum += value(l)
		}
		middle := looks[i+meanOf/2].at.Sub(c.from).Hours()
		fmt.Fprintf(&path, "%s%.1f %.1f", letter, c.x(middle), c.y(sum/meanOf))
		letter = "L"
	}
	return path.String()
}

func (c chart) curve(b *strings.Builder, class string, looks []dayLook, value func(dayLook) float64) {
	fmt.Fprintf(b, `<path class="line %s" d="%s"/>`+"\n", class, c.points(looks, value))
}

func (c chart) area(b *strings.Builder, looks []dayLook, value func(dayLook) float64) {
	fmt.Fprintf(b, `<path class="demand" d="%sV%dH%dZ"/>`+"\n", c.points(looks, value), c.bottom, picLeft)
}

// label names a curve at its end.
func (c chart) label(b *strings.Builder, name string, value float64) {
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", picRight-4, c.y(value)-6, name)
}

package policy_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
)

// The size of the picture and of its two charts, in pixels.
const (
	svgWidth, svgHeight   = 960, 620
	svgLeft, svgRight     = 60, 930
	hostsTop, hostsBottom = 80, 360
	costTop, costBottom   = 430, 570
)

// drawDay draws the two days: hosts above, their cost below.
func drawDay(with, without *day, prices cost.Prices) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#333">`, svgWidth, svgHeight)
	line(`<title>A working day with a warm pool and without one</title>`)
	line(`<rect width="%d" height="%d" fill="#fff"/>`, svgWidth, svgHeight)
	line(`<text x="%d" y="28" font-size="17">A working day: %d runs, with a warm pool and without one</text>`, svgLeft, len(with.waits))
	line(`<text x="%d" y="50">Host ready within %s: %.1f %% of the runs with the pool, %.1f %% without. Host-hours: %.0f and %.0f.</text>`,
		svgLeft, dayRegister, 100*with.within(dayRegister), 100*without.within(dayRegister), with.spent.Hours(), without.spent.Hours())

	most := float64(max(with.most, without.most)/10*10 + 10)
	hosts := chart{top: hostsTop, bottom: hostsBottom, most: most}
	hosts.axis(&b, 10, "%.0f")
	hosts.area(&b, "#d9e6f2", with.looks, func(l dayLook) float64 { return float64(l.working) })
	hosts.curve(&b, "#1f5fa8", "", with.looks, func(l dayLook) float64 { return float64(l.up) })
	hosts.curve(&b, "#999", "4 3", without.looks, func(l dayLook) float64 { return float64(l.up) })
	hosts.curve(&b, "#d9822b", "", with.looks, func(l dayLook) float64 { return float64(l.fresh) })
	legend(&b, hostsTop-8, []string{"#d9e6f2", "#1f5fa8", "#d9822b", "#999"},
		[]string{"demand: hosts that work", "running, with the pool", "idle and fresh", "running, without a pool"})

	dollars := func(l dayLook) float64 { return l.spent.Hours() * prices.Machine }
	total := chart{top: costTop, bottom: costBottom, most: float64(int(dollars(dayLook{spent: with.spent}))/5*5 + 5)}
	total.axis(&b, 5, "$%.0f")
	total.curve(&b, "#1f5fa8", "", with.looks, dollars)
	total.curve(&b, "#999", "4 3", without.looks, dollars)
	legend(&b, costTop-8, []string{"#1f5fa8", "#999"}, []string{
		fmt.Sprintf("with the pool: $%.2f", dollars(dayLook{spent: with.spent})), fmt.Sprintf("without: $%.2f", dollars(dayLook{spent: without.spent})),
	})
	line(`<text x="%d" y="%d" fill="#777">Hours of Europe/Amsterdam; hosts at $%.4f an hour (%s, %s, %s).</text>`,
		svgLeft, svgHeight-10, prices.Machine, prices.MachineType, prices.Region, prices.Date)
	line(`</svg>`)
	return b.String()
}

// chart is a part of the picture over the hours of the day.
type chart struct {
	top, bottom int
	most        float64
}

func (c chart) x(l dayLook, first time.Time) float64 {
	return svgLeft + float64(svgRight-svgLeft)*l.at.Sub(first).Hours()/24
}

func (c chart) y(v float64) float64 { return float64(c.bottom) - float64(c.bottom-c.top)*v/c.most }

// axis draws lines at multiples of step, and the hours below.
func (c chart) axis(b *strings.Builder, step float64, label string) {
	for v := 0.0; v <= c.most; v += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#e5e5e5"/><text x="%d" y="%.1f" text-anchor="end">`+label+"</text>\n",
			svgLeft, c.y(v), svgRight, svgLeft-8, c.y(v)+4, v)
	}
	for hour := 0; hour <= 24; hour += 3 {
		x := svgLeft + (svgRight-svgLeft)*hour/24
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%d:00</text>`+"\n", x, c.bottom+18, hour)
	}
}

// points are the values of the looks, as a path.
func (c chart) points(looks []dayLook, value func(dayLook) float64) string {
	var path strings.Builder
	for i, l := range looks {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", letter, c.x(l, looks[0].at), c.y(value(l)))
	}
	return path.String()
}

func (c chart) curve(b *strings.Builder, colour, dashes string, looks []dayLook, value func(dayLook) float64) {
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", c.points(looks, value), colour, dashes)
}

func (c chart) area(b *strings.Builder, colour string, looks []dayLook, value func(dayLook) float64) {
	fmt.Fprintf(b, `<path d="%sL%.1f %dL%d %dZ" fill="%s"/>`+"\n", c.points(looks, value), c.x(looks[len(looks)-1], looks[0].at), c.bottom, svgLeft, c.bottom, colour)
}

func legend(b *strings.Builder, y int, colours, words []string) {
	for i, w := range words {
		x := svgLeft + i*(svgRight-svgLeft)/len(words)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-9, colours[i], x+20, y, w)
	}
}

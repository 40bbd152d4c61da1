package page

import (
	"fmt"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// chart is a picture over time: a lane for each host, request or job, with a part for each of its states.
type chart struct {
	From, To time.Time
	Lanes    []lane
	// Of is how many lanes there are in all. Lanes may have the first of them alone.
	Of int
	// Slider has the hosts of each state over time; nil: there is no slider.
	Slider *tally
	// Waits has the states of requests and jobs explained too.
	Waits bool
	// Hours are where the axis has a label.
	Hours []label
}

// width is that of a chart in its own units.
const width = 1000

// place is a place or a width on a chart, in its units.
type place int

// String is the same in percent, as SVG has it.
func (p place) String() string { return fmt.Sprintf("%d.%d%%", p/10, p%10) }

type lane struct {
	// Name is that of a host, a request or a job. Link leads to its page; empty: it has none.
	Name, Link string
	Y          int
	Parts      []part
	// Claims and Ends are where a run got the host, and where it ended.
	Claims, Ends []place
}

type part struct {
	X, W  place
	State string
	// Title says which state it is, and since when.
	Title string
}

type label struct {
	X    place
	Text string
}

// The bounds of a chart, which keep a page below 200 KiB.
const (
	mostLanes  = 100
	mostParts  = 1000
	mostInLane = 200
	laneStep   = 24 // the least height of what a finger is to meet (WCAG 2.2, 2.5.8)
)

// Height is that of all lanes.
func (c *chart) Height() int { return max(laneStep, len(c.Lanes)*laneStep) }

// chartStates are how the states of hosts are called in the style sheet.
var chartStates = map[remudav1.State]string{
	remudav1.State_STATE_CREATED: "created", remudav1.State_STATE_CLAIMED: "claimed", remudav1.State_STATE_RUNNING: "running", remudav1.State_STATE_IDLE: "idle",
}

// x is the place of a time.
func (c *chart) x(t time.Time) place {
	return place(width * t.Sub(c.From) / max(c.To.Sub(c.From), time.Millisecond))
}

// within is a time moved into those of the chart: clocks differ, and what began before begins at its edge.
func (c *chart) within(t time.Time) time.Time {
	switch {
	case t.Before(c.From):
		return c.From
	case t.After(c.To):
		return c.To
	}
	return t
}

// part is a state from one time to another.
func (c *chart) part(state string, from, to time.Time) part {
	return part{X: c.x(from), W: max(1, c.x(to)-c.x(from)), State: state, Title: fmt.Sprintf("%s from %s to %s", state, clock(from), clock(to))}
}

// sections divides lanes, which have so many parts each, so that each section is small enough for a page.
func sections(parts []int) (starts []int) {
	all := 0
	for i, n := range parts {
		if all += n; i == 0 || i == starts[len(starts)-1]+mostLanes || all > mostParts {
			starts, all = append(starts, i), n
		}
	}
	return starts
}

// show draws some lanes below each other.
func (c *chart) show(lanes []lane) {
	c.Hours = c.hours()
	for i, l := range lanes {
		l.Y = i * laneStep
		c.Lanes = append(c.Lanes, l)
	}
}

// hours are labels at whole steps of the axis, eight of them at most.
func (c *chart) hours() []label {
	step, form := 4*time.Hour, "15:04"
	for _, d := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
		if c.To.Sub(c.From)/d < 8 {
			step = d
			break
		}
	}
	if step < time.Minute {
		form = time.TimeOnly
	}
	var all []label
	for t := c.From.Truncate(step).Add(step); t.Before(c.To) && len(all) < 8; t = t.Add(step) {
		all = append(all, label{c.x(t), t.UTC().Format(form)})
	}
	return all
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

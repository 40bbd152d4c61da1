package page

import (
	"fmt"
	"slices"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// chart is a history of hosts: a lane for each, with a part for each of its states.
type chart struct {
	From, To time.Time
	Lanes    []lane
	// More is how many hosts are left out.
	More int
	// Slider has the states counted at a time that is chosen.
	Slider bool
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
	Host, Link string
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

// Width is that of the chart.
func (c *chart) Width() int { return width }

// chartStates are how the states of hosts are called in the style sheet.
var chartStates = map[remudav1.State]string{
	remudav1.State_STATE_CREATED: "created", remudav1.State_STATE_CLAIMED: "claimed", remudav1.State_STATE_RUNNING: "running", remudav1.State_STATE_IDLE: "idle",
}

// chartOf draws what events say of hosts between two times. The hosts come first that changed last.
func chartOf(events []*remudav1.Event, from, to time.Time) *chart {
	c := &chart{From: from, To: to}
	byHost := map[string][]*remudav1.Event{}
	var hosts []string
	for _, e := range slices.Backward(events) {
		if id := e.GetInstanceId(); id != "" && (e.GetToState() != remudav1.State_STATE_UNSPECIFIED || byHost[id] != nil) {
			if byHost[id] == nil {
				hosts = append(hosts, id)
			}
			byHost[id] = append(byHost[id], e)
		}
	}
	parts := 0
	for i, id := range hosts {
		slices.Reverse(byHost[id])
		l := c.lane(id, byHost[id])
		if parts += len(l.Parts); i == mostLanes || parts > mostParts {
			c.More = len(hosts) - i
			break
		}
		l.Y = len(c.Lanes) * laneStep
		c.Lanes = append(c.Lanes, l)
	}
	c.Hours = c.hours()
	return c
}

// x is the place of a time.
func (c *chart) x(t time.Time) place {
	return place(width * t.Sub(c.From) / max(c.To.Sub(c.From), time.Millisecond))
}

func (c *chart) lane(id string, events []*remudav1.Event) lane {
	l := lane{Host: id, Link: hostLink(id)}
	state, since := events[0].GetFromState(), c.From
	end := func(at time.Time) {
		if name := chartStates[state]; name != "" && at.After(since) {
			l.Parts = append(l.Parts, part{
				X: c.x(since), W: max(1, c.x(at)-c.x(since)), State: name, Title: fmt.Sprintf("%s from %s to %s", name, clock(since), clock(at)),
			})
		}
	}
	for _, e := range events {
		at := e.GetEventTime().AsTime()
		if at.Before(c.From) {
			at = c.From
		} else if at.After(c.To) { // by a clock that is ahead
			at = c.To
		}
		if e.GetAction() == remudav1.Action_ACTION_CLAIM {
			l.Claims = append(l.Claims, c.x(at))
		}
		to := e.GetToState()
		if to == remudav1.State_STATE_UNSPECIFIED || to == state {
			continue
		}
		end(at)
		if state, since = to, at; to == remudav1.State_STATE_TERMINATED {
			l.Ends = append(l.Ends, c.x(at))
		}
	}
	end(c.To)
	l.Parts, l.Claims = newest(l.Parts), newest(l.Claims)
	return l
}

// newest are the last ones of a lane.
func newest[T any](all []T) []T { return all[max(0, len(all)-mostInLane):] }

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

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The short states of a host: those of the record, with idle divided into what it can mean.
const (
	created   = "created"
	running   = "running"
	claimed   = "claimed"
	releasing = "releasing"
	pooled    = "pooled"
	hot       = "hot"
	resting   = "resting"
	stopped   = "stopped"
	resetting = "resetting"
	ended     = "ended"
)

// The marks of a host, which follow its state.
const (
	held        = "held"
	interrupted = "interrupted"
	retiring    = "retiring"
	orphan      = "orphan"
	unhealthy   = "unhealthy"
)

// States are all short states and marks, for filters.
var States = []string{created, running, claimed, releasing, pooled, hot, resting, stopped, resetting, ended, held, interrupted, retiring, orphan, unhealthy}

// State is the short state of a host.
func State(h *remudav1.Instance) string {
	switch h.GetState() {
	case remudav1.State_STATE_CREATED:
		return created
	case remudav1.State_STATE_RUNNING:
		return running
	case remudav1.State_STATE_CLAIMED:
		return claimed
	case remudav1.State_STATE_TERMINATED:
		return ended
	case remudav1.State_STATE_IDLE:
		return idle(h)
	}
	return strings.ToLower(strings.TrimPrefix(h.GetState().String(), "STATE_")) // a state of a newer controld
}

func idle(h *remudav1.Instance) string {
	switch {
	case h.GetStopTime() != nil:
		return stopped
	case h.GetResetTime() != nil:
		return resetting
	case h.GetHot():
		return hot
	case h.GetRestingTime() != nil:
		return resting
	case h.GetPooledTime() != nil:
		return pooled
	}
	return releasing
}

// Marks are what else is to know about a host that has not ended.
func Marks(h *remudav1.Instance, now time.Time) []string {
	if State(h) == ended {
		return nil
	}
	var marks []string
	add := func(is bool, mark string) {
		if is {
			marks = append(marks, mark)
		}
	}
	add(at(h.GetHoldTime()).After(now), held)
	add(h.GetInterruptionTime() != nil, interrupted)
	add(h.GetRetiring(), retiring)
	add(h.GetOrphanTime() != nil, orphan)
	add(!h.GetHealthy() && h.GetHeartbeatTime() != nil && State(h) != stopped && State(h) != resetting, unhealthy) // a host that boots has not reported yet
	return marks
}

// Is reports whether a short state or a mark holds for a host. Hot and resting hosts are pooled too.
func Is(h *remudav1.Instance, state string, now time.Time) bool {
	short := State(h)
	return short == state || state == pooled && (short == hot || short == resting) || slices.Contains(Marks(h, now), state)
}

// stateCell is the state with its marks.
func stateCell(h *remudav1.Instance, now time.Time) table.Cell {
	short, marks := State(h), Marks(h, now)
	style := table.Plain
	switch {
	case slices.Contains(marks, unhealthy), slices.Contains(marks, orphan):
		style = table.Bad
	case len(marks) > 0:
		style = table.Warn
	case short == running, short == hot, short == pooled, short == resting, short == stopped:
		style = table.Good
	case short == ended:
		style = table.Faint
	}
	return table.Cell{Text: strings.Join(append([]string{short}, marks...), ","), Style: style}
}

// since is when a host came into its state, as far as its record says: a write for another reason moves it.
func since(h *remudav1.Instance) time.Time {
	switch {
	case State(h) == created:
		return at(h.GetCreateTime())
	case State(h) == stopped:
		return at(h.GetStopTime())
	case State(h) == resetting:
		return at(h.GetResetTime())
	case h.GetPooledTime() != nil:
		return at(h.GetPooledTime())
	}
	return at(cmp.Or(h.GetUpdateTime(), h.GetCreateTime()))
}

// deadlines are the names of a state's threshold.
var deadlines = map[string]string{
	created: "creation timeout", claimed: "claim timeout", running: "maximum runtime", releasing: "release timeout", pooled: "idle end", hot: "idle end", resting: "idle end",
	stopped: "stopped end", resetting: "reset timeout",
}

// next is the next event of a host that is known, and when: what EC2 announced, the end of a hold, or the deadline of its
// state. A hold in force comes first even if it is longer than the deadline: the host is not ended before it is over.
func next(h *remudav1.Instance, now time.Time) (string, time.Time) {
	short := State(h)
	if short == ended {
		return "", time.Time{}
	}
	if t := at(h.GetInterruptionTime()); !t.IsZero() {
		return "interruption", t
	}
	if hold := at(h.GetHoldTime()); hold.After(now) {
		return "hold end", hold
	}
	threshold := at(h.GetThreshold())
	if threshold.IsZero() {
		return "", time.Time{}
	}
	what := cmp.Or(deadlines[short], "deadline")
	if short == releasing && h.GetAssignment() == 1 { // launched ahead of need
		what = deadlines[created]
	}
	return what, threshold
}

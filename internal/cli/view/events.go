package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The columns of events, which come one by one, have fixed widths. A longer text moves the rest of its line.
const eventLine = "%-*s  %-19s  %-16s  %-32s  %s"

// dayTime is a time of the last 24 hours, which may be of yesterday.
const dayTime = "01-02 15:04:05"

// EventHead is the line above events.
func EventHead(wide bool) string {
	return fmt.Sprintf(eventLine, timeWidth(wide), "TIME", "HOST", "ACTION", "RUN", "REASON")
}

func timeWidth(wide bool) int {
	if wide {
		return len(time.RFC3339) - len("07:00") // 2006-01-02T15:04:05Z
	}
	return len(dayTime)
}

// Event is an event on one line. Its time is that of a clock in the zone, since a line that stays on the screen cannot be
// relative; in wide it is RFC 3339.
func Event(e *remudav1.Event, zone *time.Location, wide bool) string {
	when := at(e.GetEventTime()).In(zone).Format(dayTime)
	if wide {
		when = at(e.GetEventTime()).UTC().Format(time.RFC3339)
	}
	t := table.Row(when, e.GetInstanceId(), Action(e.GetAction()), eventRun(e), e.GetReason())
	for i, cell := range t {
		t[i].Text = cell.Shown()
	}
	return fmt.Sprintf(eventLine, timeWidth(wide), t[0].Text, t[1].Text, t[2].Text, t[3].Text, t[4].Text)
}

// Action is the name of an action as people write it.
func Action(a remudav1.Action) string {
	if a == remudav1.Action_ACTION_UNSPECIFIED {
		return "request"
	}
	return word(a.String(), "ACTION_")
}

func eventRun(e *remudav1.Event) string {
	if e.GetRunId() == "" {
		return ""
	}
	return cmp.Or(e.GetRepository(), "?") + " " + e.GetRunId()
}

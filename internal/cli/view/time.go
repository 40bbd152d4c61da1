package view

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Span is a duration with as many parts as a person reads at a glance, rounded: 45s, 4m, 1h58m, 3d4h.
func Span(d time.Duration) string {
	d = d.Abs()
	if seconds := d.Round(time.Second); seconds < time.Minute {
		return fmt.Sprintf("%ds", int(seconds.Seconds()))
	}
	minutes := int(d.Round(time.Minute).Minutes())
	switch {
	case minutes < 60:
		return fmt.Sprintf("%dm", minutes)
	case minutes < 24*60:
		return two(minutes/60, "h", minutes%60, "m")
	}
	hours := int(d.Round(time.Hour).Hours())
	return two(hours/24, "d", hours%24, "h")
}

func two(large int, unit string, small int, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", large, unit)
	}
	return fmt.Sprintf("%d%s%d%s", large, unit, small, smallUnit)
}

// When is a time as seen from now: "in 4m", or "4m ago".
func When(t, now time.Time) string {
	if t.After(now) {
		return "in " + Span(t.Sub(now))
	}
	return Span(now.Sub(t)) + " ago"
}

// clock is how a view writes its times.
type clock struct {
	now  time.Time
	wide bool
}

// age is how long ago something was; in wide, when.
func (c clock) age(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case c.wide:
		return t.UTC().Format(time.RFC3339)
	case t.After(c.now): // the clocks of two machines differ
		return "0s"
	}
	return Span(c.now.Sub(t))
}

// next is what happens when.
func (c clock) next(what string, t time.Time) string {
	switch {
	case what == "":
		return ""
	case c.wide:
		return what + " " + t.UTC().Format(time.RFC3339)
	}
	return what + " " + When(t, c.now)
}

// at is the time of a message; absent is zero.
func at(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

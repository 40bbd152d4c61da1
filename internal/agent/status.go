package agent

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Longest parts of a status line, in characters. Names come from workflows and
// may be anything.
const (
	longestStatus = 200
	longestReason = 110
	longestName   = 40
)

const (
	// exactBelow is the time left from which on it is told in seconds.
	exactBelow = 2 * time.Minute
	// statusStep is how exact such a time is: a line for each second would only
	// be work for everybody.
	statusStep = 5 * time.Second
)

// Status is the one line about the host for people: state, run, job, time left.
// awaySince is since when the store is not reached; zero: it is. The line is of
// at most 200 printable characters; times in it change by the minute, and below
// two minutes every five seconds. It is pure.
func Status(f Facts, awaySince, now time.Time) string {
	v := view{Facts: f, now: now}
	line := v.status()
	if !awaySince.IsZero() {
		line = fmt.Sprintf("store unreachable since %s; %s", elapsed(now.Sub(awaySince)), line)
	}
	if !v.Scene.RebalanceAt.IsZero() && !v.interrupted() {
		line += "; EC2 may take this machine"
	}
	return printable(line, longestStatus)
}

func (v view) status() string {
	if v.held() {
		return fmt.Sprintf("held until %s; %s", v.clockTime(v.Record.Hold), v.doing())
	}
	if why := v.mustEnd(); why != "" {
		return v.ending(why)
	}
	switch {
	case v.interrupted():
		return v.leaving()
	case !v.MissingSince.IsZero():
		return fmt.Sprintf("record gone since %s; %s", elapsed(v.now.Sub(v.MissingSince)), v.withTimeLeft())
	case v.Blind:
		return "the host cannot be looked at; " + v.withTimeLeft()
	}
	return v.withTimeLeft()
}

// clockTime is a time of day, with the date where it is not today's.
func (v view) clockTime(t time.Time) string {
	t, now := t.UTC(), v.now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

func (v view) ending(why string) string {
	if v.Record != nil && v.Record.State == lifecycle.StateTerminated {
		return "terminated: powering off: " + printable(v.Record.Reason, longestReason)
	}
	return "ending: powering off: " + printable(why, longestReason)
}

func (v view) leaving() string {
	line := "interrupted: EC2 takes this machine now; "
	if left := v.Scene.InterruptionAt.Sub(v.now); left > 0 {
		line = fmt.Sprintf("interrupted: EC2 takes this machine in %s; ", remaining(left))
	}
	switch {
	case v.busy():
		return line + v.job() + " works on"
	case v.Scene.Listener.alive():
		return line + "its runner is being stopped"
	}
	return line + "no job runs"
}

// withTimeLeft is what the host does and for how long it may.
func (v view) withTimeLeft() string {
	line := v.doing()
	at, _ := v.deadline()
	end := v.endsAt()
	switch script := v.scriptEnd(); {
	case !script.IsZero(): // the earliest of all, mostly
		return fmt.Sprintf("%s, ends itself in %s", line, remaining(end.Sub(v.now)))
	case at.IsZero():
		return line
	case v.now.Before(at):
		return fmt.Sprintf("%s, %s left", line, remaining(at.Sub(v.now)))
	}
	return fmt.Sprintf("%s, its time is over, ends itself in %s", line, remaining(end.Sub(v.now)))
}

// doing is the state, the run and the job.
func (v view) doing() string {
	r := v.Record
	switch {
	case r == nil && v.busy():
		return "no record: " + v.job() + " runs"
	case r == nil:
		return "created: waiting for a record"
	case r.State == lifecycle.StateRunning && v.busy():
		return fmt.Sprintf("running: %s, %s", v.work(), v.job())
	case r.State == lifecycle.StateRunning:
		return fmt.Sprintf("running: %s, %s", v.work(), v.why())
	case r.Releasing() && v.busy():
		return fmt.Sprintf("releasing: waiting for %s to finish", v.theJob())
	case r.Releasing():
		return "releasing: " + v.why()
	case r.Pooled() && v.busy():
		return "idle: " + v.job() + " runs"
	case r.Pooled() && v.keepInStep().Answer.Signal == lifecycle.SignalRemoveRegOK:
		return "idle: clean, in the pool"
	case r.Pooled():
		return "idle: " + v.why()
	case r.State == lifecycle.StateTerminated: // and held
		return "terminated"
	case v.busy():
		return fmt.Sprintf("%s: %s, %s", printable(string(r.State), longestName), v.work(), v.job())
	}
	return fmt.Sprintf("%s: %s, %s", printable(string(r.State), longestName), v.work(), v.why())
}

// why is what the agent does or waits for.
func (v view) why() string { return printable(v.keepInStep().Why, longestReason) }

// work is what the host is for.
func (v view) work() string {
	if r := v.Record; r.JobsOf != "" {
		return "one job of " + printable(r.JobsOf, longestName)
	}
	return fmt.Sprintf("run %s of %s", printable(v.Record.RunID, longestName), printable(v.Record.Repository, longestName))
}

// job names the job that runs and counts it, such as: job "build" (2nd job).
func (v view) job() string {
	name := "a job"
	if v.Scene.Job != "" {
		name = fmt.Sprintf("job %q", printable(v.Scene.Job, longestName))
	}
	if n := v.Scene.Jobs; n > 0 {
		name += fmt.Sprintf(" (%s job)", ordinal(n))
	}
	return name
}

func (v view) theJob() string {
	if v.Scene.Job == "" {
		return "its job"
	}
	return fmt.Sprintf("the job %q", printable(v.Scene.Job, longestName))
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// remaining is a time left: whole minutes rounded down, and below two minutes
// whole steps rounded up.
func remaining(d time.Duration) string {
	if d < exactBelow {
		return short((max(d, 0) + statusStep - 1).Truncate(statusStep))
	}
	return short(d.Truncate(time.Minute))
}

// elapsed is a time gone by, rounded down.
func elapsed(d time.Duration) string {
	if d < exactBelow {
		return short(max(d, 0).Truncate(statusStep))
	}
	return short(d.Truncate(time.Minute))
}

// short is a duration such as 5h 42m, 4m, 1m 50s or 0s.
func short(d time.Duration) string {
	h, m, s := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	var parts []string
	for _, p := range []struct {
		n    time.Duration
		unit string
	}{{h, "h"}, {m, "m"}, {s, "s"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", p.n, p.unit))
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}

// printable returns a text without secrets as one line of printable characters,
// at most so many.
func printable(s string, most int) string {
	s = redact(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r): // also what turns the direction of writing
			return -1
		}
		return r
	}, s))
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// Status is the status line after the last step.
func (a *Agent) Status(now time.Time) string {
	return Status(a.facts(), a.reading.awaySince, a.storeTime(now))
}

// statusChange is when a time in the status line that is told in seconds
// changes; zero when there is none.
func (a *Agent) statusChange(now time.Time) time.Time {
	v := view{Facts: a.facts(), now: a.storeTime(now)}
	at, _ := v.deadline()
	next := time.Time{}
	for _, t := range []time.Time{at, v.endsAt(), v.Scene.InterruptionAt} {
		if left := t.Sub(v.now); !t.IsZero() && left > 0 && left <= exactBelow {
			next = earliest(next, now.Add((left-1)%statusStep+1))
		}
	}
	for _, t := range []time.Time{a.reading.awaySince, v.MissingSince} {
		if gone := v.now.Sub(t); !t.IsZero() && gone >= 0 && gone < exactBelow {
			next = earliest(next, now.Add(statusStep-gone%statusStep))
		}
	}
	return next
}

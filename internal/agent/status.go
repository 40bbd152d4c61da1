package agent

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Longest parts of a status line, in characters. Names come from workflows and may be anything.
const (
	longestStatus = 200
	longestReason = 110
	longestName   = 40
)

const (
	// exactBelow is the remaining time below which it is shown in seconds.
	exactBelow = 2 * time.Minute
	// statusStep is the resolution of such a time. A new line for each second would only cost work.
	statusStep = 5 * time.Second
)

// Status returns one line about the host for people: state, run, job, time left. awaySince is since when the
// store has not answered; zero if it does. The line has at most 200 printable characters. Times in it change
// every minute, and below two minutes every five seconds. It is pure.
func Status(f Facts, awaySince, now time.Time) string {
	v := decider{Facts: f, now: now}
	line := v.status()
	if !awaySince.IsZero() {
		line = fmt.Sprintf("store unreachable since %s; %s", elapsed(now.Sub(awaySince)), line)
	}
	if !v.Observed.RebalanceAt.IsZero() && !v.interrupted() {
		line += "; EC2 may take this machine"
	}
	return printable(line, longestStatus)
}

func (v decider) status() string {
	if v.held() {
		return fmt.Sprintf("held until %s; %s", v.clockTime(v.Record.Hold), v.activity())
	}
	if reason := v.mustEnd(); reason != "" {
		return v.ending(reason)
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

// clockTime formats a time of day, with the date if it is not today.
func (v decider) clockTime(t time.Time) string {
	t, now := t.UTC(), v.now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

func (v decider) ending(reason string) string {
	if v.Record != nil && v.Record.State == lifecycle.StateTerminated {
		return "terminated: powering off: " + printable(v.Record.Reason, longestReason)
	}
	return "ending: powering off: " + printable(reason, longestReason)
}

func (v decider) leaving() string {
	line := "interrupted: EC2 takes this machine now; "
	if left := v.Observed.InterruptionAt.Sub(v.now); left > 0 {
		line = fmt.Sprintf("interrupted: EC2 takes this machine in %s; ", remaining(left))
	}
	switch {
	case v.busy():
		return line + v.job() + " works on"
	case v.Observed.Listener.alive():
		return line + "its runner is being stopped"
	}
	return line + "no job runs"
}

// withTimeLeft describes what the host does and for how long it may.
func (v decider) withTimeLeft() string {
	line := v.activity()
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

// activity describes the state, the run and the job.
func (v decider) activity() string {
	r := v.Record
	switch {
	case r == nil && v.busy():
		return "no record: " + v.job() + " runs"
	case r == nil:
		return "created: waiting for a record"
	case r.State == lifecycle.StateRunning && v.busy():
		return fmt.Sprintf("running: %s, %s", v.purpose(), v.job())
	case r.State == lifecycle.StateRunning:
		return fmt.Sprintf("running: %s, %s", v.purpose(), v.reason())
	case r.Resetting():
		return "idle: clean, waiting for a new root volume"
	case r.Releasing() && v.busy():
		return fmt.Sprintf("releasing: waiting for %s to finish", v.theJob())
	case r.Releasing():
		return "releasing: " + v.reason()
	case standsBy(*r):
		return v.standingBy()
	case r.Pooled() && v.busy():
		return "idle: " + v.job() + " runs"
	case r.Resting() && v.keepInStep().Answer.Signal == lifecycle.SignalRemoveRegOK:
		return "idle: clean, in the pool, resting"
	case r.Pooled() && v.keepInStep().Answer.Signal == lifecycle.SignalRemoveRegOK:
		return "idle: clean, in the pool"
	case r.Pooled():
		return "idle: " + v.reason()
	case r.State == lifecycle.StateTerminated: // and held
		return "terminated"
	case v.busy():
		return fmt.Sprintf("%s: %s, %s", printable(string(r.State), longestName), v.purpose(), v.job())
	}
	return fmt.Sprintf("%s: %s, %s", printable(string(r.State), longestName), v.purpose(), v.reason())
}

// standingBy describes a pooled host that registers ahead of need.
func (v decider) standingBy() string {
	listens := v.keepInStep().Answer.Signal == lifecycle.SignalRegOK
	switch {
	case listens && !v.busy():
		return "hot: listening, waiting for a run"
	case listens || v.registeredAhead():
		return "hot: " + v.reason()
	}
	return "warming: " + v.reason()
}

// reason describes what the agent does or waits for.
func (v decider) reason() string { return printable(v.keepInStep().Reason, longestReason) }

// purpose describes what the host serves.
func (v decider) purpose() string {
	if r := v.Record; r.JobsOf != "" {
		return "one job of " + printable(r.JobsOf, longestName)
	}
	return fmt.Sprintf("run %s of %s", printable(v.Record.RunID, longestName), printable(v.Record.Repository, longestName))
}

// job names the running job with its number, such as: job "build" (2nd job).
func (v decider) job() string {
	name := "a job"
	if v.Observed.Job != "" {
		name = fmt.Sprintf("job %q", printable(v.Observed.Job, longestName))
	}
	if n := v.Observed.Jobs; n > 0 {
		name += fmt.Sprintf(" (%s job)", ordinal(n))
	}
	return name
}

func (v decider) theJob() string {
	if v.Observed.Job == "" {
		return "its job"
	}
	return fmt.Sprintf("the job %q", printable(v.Observed.Job, longestName))
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

// remaining formats a remaining time: whole minutes rounded down, and below two
// minutes whole steps rounded up.
func remaining(d time.Duration) string {
	if d < exactBelow {
		return short((max(d, 0) + statusStep - 1).Truncate(statusStep))
	}
	return short(d.Truncate(time.Minute))
}

// elapsed formats an elapsed time, rounded down.
func elapsed(d time.Duration) string {
	if d < exactBelow {
		return short(max(d, 0).Truncate(statusStep))
	}
	return short(d.Truncate(time.Minute))
}

// short formats a duration as 5h 42m, 4m, 1m 50s or 0s.
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

// printable returns a text without secrets, as one line of at most so many printable characters.
func printable(s string, most int) string {
	s = redact(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r): // also characters that change the direction of writing
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
	return Status(a.facts(), a.poller.awaySince, a.storeTime(now))
}

// statusChange returns when a time in the status line that is shown in seconds
// changes next; zero if there is none.
func (a *Agent) statusChange(now time.Time) time.Time {
	v := decider{Facts: a.facts(), now: a.storeTime(now)}
	at, _ := v.deadline()
	next := time.Time{}
	for _, t := range []time.Time{at, v.endsAt(), v.Observed.InterruptionAt} {
		if left := t.Sub(v.now); !t.IsZero() && left > 0 && left <= exactBelow {
			next = earliest(next, now.Add((left-1)%statusStep+1))
		}
	}
	for _, t := range []time.Time{a.poller.awaySince, v.MissingSince} {
		if gone := v.now.Sub(t); !t.IsZero() && gone >= 0 && gone < exactBelow {
			next = earliest(next, now.Add(statusStep-gone%statusStep))
		}
	}
	return next
}

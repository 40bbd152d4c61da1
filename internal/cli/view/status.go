package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// expiresSoon is how long before its end a certificate is marked: two weeks are enough to renew it in working hours.
	expiresSoon = 14 * 24 * time.Hour
	// clockOff is how far a clock may be off without a mark: NTP keeps it far closer.
	clockOff = 5 * time.Second
)

// Replicas is a row for each controld that is alive.
func Replicas(replicas []*remudav1.Replica, now time.Time) table.Table {
	t := table.Table{Head: []string{"CONTROLD", "VERSION", "RUNS FOR", "CLOCK", "ANSWERS"}}
	for _, r := range replicas {
		row := table.Row(r.GetName(), Version(r), clock{now: now}.age(at(r.GetStartTime())), Clock(r), yes(r.GetAnswering()))
		if ClockIsOff(r) {
			row[3].Style = table.Bad
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Version is that of a controld, as far as it says.
func Version(r *remudav1.Replica) string {
	if r.GetVersion() == "" {
		return "unknown"
	}
	return r.GetVersion()
}

// Clock is how far the clock of a controld is from that of AWS.
func Clock(r *remudav1.Replica) string {
	switch off := r.GetClockOffset().AsDuration(); {
	case off.Abs() < time.Second:
		return "right"
	case off < 0:
		return Span(off) + " ahead"
	default:
		return Span(off) + " behind"
	}
}

// ClockIsOff reports whether the clock of a controld needs a look.
func ClockIsOff(r *remudav1.Replica) bool { return r.GetClockOffset().AsDuration().Abs() >= clockOff }

// Credentials is a row for each certificate and key.
func Credentials(all []*remudav1.Credential, now time.Time) table.Table {
	t := table.Table{Head: []string{"SETTING", "FROM", "CHANGED", "EXPIRES", "A CHANGE COUNTS", "STATE"}}
	for _, c := range all {
		changed, expires := "", ""
		if when := at(c.GetChangeTime()); !when.IsZero() {
			changed = When(when, now)
		}
		if when := at(c.GetExpireTime()); !when.IsZero() {
			expires = fmt.Sprintf("%s (%s)", when.UTC().Format(time.DateOnly), When(when, now))
		}
		row := table.Row(c.GetSetting(), c.GetSource(), changed, expires, changeCounts(c), "good")
		if wrong := CredentialProblem(c, now); wrong != "" {
			row[5] = table.Cell{Text: wrong, Style: table.Bad}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// CredentialProblem is what is to be done about a certificate or key; empty: nothing.
func CredentialProblem(c *remudav1.Credential, now time.Time) string {
	expires := at(c.GetExpireTime())
	switch {
	case c.GetProblem() != "":
		return c.GetProblem()
	case c.GetOutdated():
		return "changed since controld has read it: restart controld"
	case !expires.IsZero() && !now.Before(expires):
		return "expired: renew it"
	case !expires.IsZero() && expires.Sub(now) < expiresSoon:
		return "expires soon: renew it"
	}
	return ""
}

// CredentialDetail describes a certificate or key in a sentence.
func CredentialDetail(c *remudav1.Credential, now time.Time) string {
	parts := []string{c.GetSource()}
	if c.GetSubject() != "" {
		parts = append(parts, c.GetSubject())
	}
	if when := at(c.GetExpireTime()); !when.IsZero() {
		parts = append(parts, fmt.Sprintf("valid until %s (%s)", when.UTC().Format(time.DateOnly), When(when, now)))
	}
	if when := at(c.GetChangeTime()); !when.IsZero() {
		parts = append(parts, "changed "+When(when, now))
	}
	return strings.Join(append(parts, "a change counts "+changeCounts(c)), ", ")
}

// changeCounts is when a change of the file or variable counts.
func changeCounts(c *remudav1.Credential) string {
	if c.GetReloaded() {
		return "within a minute"
	}
	return "after a restart"
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// Hold describes the hold on the whole fleet: until when, by which operator and why.
func Hold(h *remudav1.FleetHold) string {
	s := "No host is ended until " + at(h.GetUntilTime()).UTC().Format(time.RFC3339)
	if h.GetOperator() != "" {
		s += ", by order of " + h.GetOperator()
	}
	if h.GetReason() != "" {
		s += ": " + line.First(h.GetReason())
	}
	return s + "."
}

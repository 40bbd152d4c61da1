// Package pause has an operator's pause of a pool.
package pause

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

// Pause keeps a pool from giving out hosts and from launching any. It ends no host and no job. Each pool has one row,
// written under its version.
type Pause struct {
	Pool string `json:"pool"`
	// Since is when an operator paused the pool; zero: it is not paused.
	Since time.Time `json:"since,omitzero"`
	// From and Until are when the last pause that is over began and ended; zero: there was none.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// By and Reason are of the last change of it.
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Version int64  `json:"version"`
}

// On reports whether the pool is paused.
func (p Pause) On() bool { return !p.Since.IsZero() }

// Over describes the last pause that is over, where it kept what has waited since a time; empty: it did not.
func (p Pause) Over(since time.Time) string {
	if since.IsZero() || !since.Before(p.Until) {
		return ""
	}
	return "pool " + p.Pool + " was paused from " + p.From.UTC().Format(time.RFC3339) + " to " + p.Until.UTC().Format(time.RFC3339)
}

// String describes a pause: since when, by which operator and why.
func (p Pause) String() string {
	s := "pool " + p.Pool + " is paused since " + p.Since.UTC().Format(time.RFC3339)
	if p.By != "" {
		s += " by " + p.By
	}
	if p.Reason != "" {
		s += " (" + line.First(p.Reason) + ")"
	}
	return s
}

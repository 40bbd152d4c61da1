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
	// By and Reason are of the last change of it.
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Version int64  `json:"version"`
}

// On reports whether the pool is paused.
func (p Pause) On() bool { return !p.Since.IsZero() }

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

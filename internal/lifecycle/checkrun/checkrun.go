// Package checkrun is what is known of the check runs on GitHub that say why jobs wait. It is pure.
package checkrun

import (
	"slices"
	"strings"
	"time"
)

// Check is a check run on the commit of a workflow run, which has not been completed.
type Check struct {
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	// ID is GitHub's. 0: it is being made, or GitHub took none.
	ID int64 `json:"id,omitempty"`
	// Since is from when on something of the run has waited.
	Since time.Time `json:"since"`
	// Shown is a digest of what it says, and TriedAt when it was last written, or when that was last tried.
	Shown   string    `json:"shown,omitempty"`
	TriedAt time.Time `json:"triedAt"`
	// Refused: GitHub did not take the last write.
	Refused bool `json:"refused,omitempty"`
}

// Of reports whether the check is of a run.
func (c Check) Of(repository, runID string) bool {
	return c.RunID == runID && strings.EqualFold(c.Repository, repository)
}

// Content is what a check run shows. Conclusion is empty while it is open.
type Content struct{ Title, Summary, Conclusion string }

// The conclusions of check runs (REST API, "Create a check run").
const (
	Neutral        = "neutral"
	ActionRequired = "action_required"
)

// Head is what a check run is made on: the head commit of a workflow run, and the name of its workflow.
type Head struct{ SHA, Workflow string }

// Purpose is what a check run is for. A run may have one of each, and each has a name and an external id of its own.
type Purpose string

// The purposes.
const (
	Waits   Purpose = "wait"
	Refusal Purpose = "refused"
)

// Found is a check run that GitHub has.
type Found struct {
	ID   int64
	Open bool
}

// AtMost is how many check runs are open at a time. Runs beyond that wait without one.
const AtMost = 500

// Table are all open check runs of a fleet: few, in one row.
type Table struct {
	Open    []Check `json:"open,omitempty"`
	Version int64   `json:"version"`
}

// Find is the check of a run.
func (t Table) Find(repository, runID string) (Check, bool) {
	i := slices.IndexFunc(t.Open, func(c Check) bool { return c.Of(repository, runID) })
	if i < 0 {
		return Check{}, false
	}
	return t.Open[i], true
}

// Count is how many check runs are open on GitHub, or are being made.
func (t Table) Count() (n int) {
	for _, c := range t.Open {
		if c.ID != 0 || !c.Refused {
			n++
		}
	}
	return n
}

// With is the table with a check in place of the one of its run.
func (t Table) With(c Check) Table {
	t = t.Without(c.Repository, c.RunID)
	t.Open = append(t.Open, c)
	return t
}

// Without is the table without the check of a run.
func (t Table) Without(repository, runID string) Table {
	t.Open = slices.DeleteFunc(slices.Clone(t.Open), func(c Check) bool { return c.Of(repository, runID) })
	return t
}

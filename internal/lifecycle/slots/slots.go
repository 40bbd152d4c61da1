// Package slots holds the rows by which hosts are given to the jobs of a job pool.
package slots

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Table is the row of a job pool: one Slot for each host that works for it. Every change is one
// conditional write, so that no number of replicas together assigns more slots than the pool's maximum.
type Table struct {
	Pool string `json:"pool"`
	// Assigned counts all slots that were ever assigned.
	Assigned int64 `json:"given"`
	// Open are the slots that have not ended, in the order of their assignment.
	Open    []Slot `json:"open,omitempty"`
	Version int64  `json:"version"`
}

// Slot is a place for one host in a job pool, from before the host is claimed or
// launched until it is in the pool again or has ended. A slot is assigned because
// a job waits, but GitHub chooses which job its host runs.
type Slot struct {
	Number int64 `json:"number"`
	// JobID is the job that the slot was assigned for; 0: the slot keeps the pool's minimum.
	JobID      int64  `json:"jobId,omitempty"`
	Repository string `json:"repository"`
	// Scope says which jobs its host can run: see lifecycle.Job.Scope.
	Scope      string    `json:"scope"`
	AssignedAt time.Time `json:"givenAt"`
	// HostKey and Runner, its registration's name, are those of its host once that is ready.
	HostKey string `json:"hostKey,omitempty"`
	Runner  string `json:"runner,omitempty"`
	// RunnerID is the id of that registration.
	RunnerID int64 `json:"runnerId,omitempty"`
	// Started is set once a job began on its host, which runs no other.
	Started bool `json:"begun,omitempty"`
	// Runs is the id of that job, once GitHub has said which; 0: it has not.
	Runs int64 `json:"runs,omitempty"`
	// UnannouncedAt is when a report of the host showed that a job began, until GitHub has said which
	// one. It is one of those that wait as far as is known.
	UnannouncedAt time.Time `json:"unannouncedAt,omitzero"`
}

// The beginnings of the run ids of slots. No workflow run's id has a colon.
const (
	slotRun  = "turn:"
	spareRun = "spare:"
)

// RunID is the run id under which the slot's host is requested, and the id of the
// request. Each slot has its own, so that a release frees that host alone.
func (t Slot) RunID(pool string) string {
	if t.JobID == 0 {
		return fmt.Sprintf("%s%s:%d", spareRun, pool, t.Number)
	}
	return fmt.Sprintf("%s%s:%d", slotRun, pool, t.Number)
}

// IsSpare reports whether a run id is that of a slot which keeps a pool's minimum.
func IsSpare(runID string) bool { return strings.HasPrefix(runID, spareRun) }

// RequestKind is the kind of the request for the slot's host.
func (t Slot) RequestKind() lifecycle.RequestKind {
	if t.JobID == 0 {
		return lifecycle.RequestForSpare
	}
	return lifecycle.RequestForSlot
}

package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// history is what is remembered of one host's record.
type history struct {
	assignedAt time.Time // when its assignment last changed
	forRun     bool      // that assignment is to a run
	claimedAt  time.Time // when a run got it last, after its launch
	readyAt    time.Time // when it last became running
	maxRuntime time.Duration
	readyFor   map[string]bool // requests
	pooledAt   time.Time
	servedRuns []string // by assignment: the run key, "" between runs
	// byStandby has the runs that the host serves by a registration that it waited with, by the assignment of that, and
	// registeredAs the assignment of that registration, by the one in which the host serves the run.
	byStandby    map[int64]string
	registeredAs map[int64]int64
	busySince    time.Time
	idleSince    time.Time
	ended        string    // why its record was terminated
	reportedAt   time.Time // when its last report was written
	// reportedBefore is when the one before that was written.
	reportedBefore time.Time
	reportLost     bool      // the store has no report any more, and none was written since
	stateLostAt    time.Time // when its agent last lost its memory
	// replacedAt is when its record was lost or got an older state; zero: never. From then on an assignment may be
	// used again. registeredFor has the runs that its agent registered for, by assignment, and registeredAt when it last did.
	replacedAt    time.Time
	registeredFor map[int64]string
	registeredAt  map[int64]time.Time
	// mayRunUntil is until when a job may run on it then, whatever its record says.
	mayRunUntil time.Time
	// verdicts are what releases said of caches, by assignment.
	verdicts map[int64]verdict
	// metered are the cycles of its readings. endedAt is when its record was terminated, by that write's own clock.
	metered []meter.Cycle
	endedAt time.Time
	// reportedFor is the assignment that its agent reported for last.
	reportedFor int64
}

// served notes the run of the record's assignment.
func (h *history) served(r lifecycle.Record) {
	for int64(len(h.servedRuns)) <= r.Assignment {
		h.servedRuns = append(h.servedRuns, "")
	}
	if r.RunID != "" {
		h.servedRuns[r.Assignment] = lifecycle.RunKey(r.Repository, r.RunID)
	}
}

// runOf is the run that is served by the registration of an assignment.
func (h *history) runOf(assignment int64) string {
	if run := h.byStandby[assignment]; run != "" {
		return run
	}
	if assignment < 0 || assignment >= int64(len(h.servedRuns)) {
		return ""
	}
	return h.servedRuns[assignment]
}

// reportWritten notes since when a host is busy, and since when it is not any more.
func (w *Watcher) reportWritten(p lifecycle.Report) {
	l := w.of(p.HostKey)
	l.reportedBefore, l.reportedAt, l.reportLost = l.reportedAt, w.Now, false
	switch {
	case !p.Busy && !l.busySince.IsZero():
		l.busySince, l.idleSince = time.Time{}, w.Now
	case !p.Busy:
	case l.busySince.IsZero():
		l.busySince = w.Now
	}
}

package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// countedBy is how old the count of quiet hosts may be that a decision goes by: two intervals of the liveness sweep,
// and the time for which the replica that decides was suspended.
const countedBy = 3 * time.Minute

// checkManySilent checks that no host is ended for a report that it did not write while many wrote none, whatever
// the operation. After the longest runtime of a job it is ended anyway.
func (w *Watcher) checkManySilent(l *history, before, after lifecycle.Record) {
	switch after.ReasonCode {
	case lifecycle.ReasonSilent, lifecycle.ReasonRegistrationTimeout, lifecycle.ReasonCleanUpTimeout, lifecycle.ReasonPreparationTimeout:
	default:
		return
	}
	if l.reportLost && (before.Assignment == 1 || before.Threshold.Equal(before.RuntimeEndsAt)) {
		return // by its record it has never reported, or its job has had its whole runtime
	}
	at := w.Now.Add(-countedBy)
	if read := w.Current.LastLook(world.SeesAllReports); !read.At.IsZero() {
		at = read.At
	}
	quietAt := at.Add(-silence.Quiet(w.Pools[before.Pool].Policy.Silence) - world.MaxLag)
	if l.reportedAt.IsZero() || l.reportedAt.After(quietAt) || !w.Now.Before(before.Threshold.Add(before.MaxRuntime)) {
		return
	}
	quiet, all := 0, 0
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || r.State == lifecycle.StateTerminated && r.HostKey != before.HostKey {
			continue
		}
		all++
		if last := w.of(m.HostKey).reportedAt; !last.IsZero() && !last.After(quietAt) {
			quiet++
		}
	}
	if silence.Mass(quiet, all) {
		w.Broken(RuleManySilent, "%s is ended while %d of %d hosts are silent: %s", before.HostKey, quiet, all, after.Reason)
	}
}

package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

func (w *Watcher) readingWritten(r meter.Reading) {
	l := w.of(r.HostKey)
	l.metered = append(l.metered, engine.Must1(meter.Parse(r.Text)))
}

// clocksDiffer is how far the clocks of replicas that sweep may be apart; see clock.Limit.
const clocksDiffer = 2 * time.Minute

// checkMetered checks the readings of a host that is forgotten: each cycle begins where the one before ended, the first with
// the launch, and the last ends with the machine, or if the cloud did not say when that was, with
// the record. A restored record repeats what it had gone through before.
func (w *Watcher) checkMetered(l *history, before, after lifecycle.Record) {
	if before.Condition() != "terminated" && after.Condition() == "terminated" {
		l.endedAt = after.UpdatedAt
	}
	if after.Condition() != "terminated" || !after.DueAt.IsZero() || before.DueAt.IsZero() || l.wasReplaced() {
		return
	}
	slices.SortFunc(l.metered, func(a, b meter.Cycle) int { return cmp.Compare(a.From, b.From) })
	from := meter.At(after.LaunchedAt)
	for _, c := range l.metered {
		if c.From != from {
			w.Broken(RuleMetered, "%s: a cycle begins at %s, the one before ended at %s", after.HostKey, engine.SinceEpoch(c.From.Time()), engine.SinceEpoch(from.Time()))
		}
		from = max(c.EndedAt, c.GoneAt)
	}
	if shown, err := w.Compute.Describe(engine.Background, []string{after.InstanceID}); err == nil && len(shown) == 1 && len(l.metered) > 0 {
		last := l.metered[len(l.metered)-1]
		if from == max(meter.At(shown[0].EndedAt), last.From, last.PooledAt, last.ClaimedAt, last.ReadyAt) {
			return
		}
	}
	if late := from - meter.At(l.endedAt); late < 0 || late > meter.Milli(clocksDiffer.Milliseconds()) {
		w.Broken(RuleMetered, "%s ended at %s, its last cycle at %s", after.HostKey, engine.SinceEpoch(l.endedAt), engine.SinceEpoch(from.Time()))
	}
}

package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// requestWritten holds a write of a request against the rules.
func (w *Watcher) requestWritten(before, after lifecycle.Request) {
	if before.Version == 0 {
		w.writtenAt[after.RequestID] = w.Now
		return
	}
	switch {
	case after.Version != before.Version+1:
		w.Broken(RuleVersion, "request %s goes from version %d to %d", after.RequestID, before.Version, after.Version)
	case before.Settled() && before.Outcome != after.Outcome:
		w.Broken(RuleTransition, "request %s goes from outcome %q to %q", after.RequestID, before.Outcome, after.Outcome)
	case before.Released() && !before.ReleasedAt.Equal(after.ReleasedAt):
		w.Broken(RuleTransition, "request %s is released twice", after.RequestID)
	}
	if before.Settled() != after.Settled() || before.Released() != after.Released() {
		w.settledAt[after.RequestID] = w.Now
	}
	if before.Settled() {
		return
	}
	if strings.HasSuffix(w.Current.Name, " sweep") {
		w.Mark(engine.MarkTakeover)
	}
	if !w.lost && before.Launch == nil && after.Launch != nil && !ahead(after) {
		w.checkReuse(after)
	}
	if before.Launch == nil && after.Launch != nil && after.Kind != lifecycle.RequestBatch {
		w.checkPaused(after.Spec.Pool, "launches for request "+after.RequestID)
	}
	if after.Kind == lifecycle.RequestBatch {
		return // it is settled once its call was made, and has no hosts of its own
	}
	switch after.Outcome {
	case lifecycle.OutcomeReady:
		w.Mark(engine.MarkReady)
		w.checkCommitted(after)
	case lifecycle.OutcomeShort:
		w.Mark(engine.MarkShort)
	case lifecycle.OutcomeReleased:
		w.Mark(engine.MarkReleased)
	}
}

// checkCommitted checks that the hosts of a committed request were ready for it, and are enough.
func (w *Watcher) checkCommitted(q lifecycle.Request) {
	if n := len(q.Taken); n < q.Spec.MinimumCount || n > q.Spec.Count {
		w.Broken(RuleReady, "request %s is settled with %d hosts, asked for %d to %d", q.RequestID, n, q.Spec.MinimumCount, q.Spec.Count)
	}
	for _, t := range q.Taken {
		if !w.of(t.HostKey).readyFor[q.RequestID] {
			w.Broken(RuleReady, "request %s is settled with %s, which was never ready for it", q.RequestID, t.HostKey)
		}
	}
}

// Provisioned checks that no assignment of a host is given to two requests.
func (w *Watcher) Provisioned(q lifecycle.Request, hosts []lifecycle.Record) {
	for _, h := range hosts {
		if h.State != lifecycle.StateRunning && !w.bootsAgain(q, h) || h.RunID != q.RunID || h.Repository != q.Repository {
			w.Broken(RuleTwiceGiven, "request %s is given %s, which is %s of run %s", q.RequestID, h.HostKey, h.Condition(), h.RunID)
		}
		key := fmt.Sprintf("%s %d", h.HostKey, h.Assignment)
		if other, ok := w.given[key]; ok && other != q.RequestID && !w.of(h.HostKey).wasReplaced() { // else the number is used again
			w.Broken(RuleTwiceGiven, "%s is given to requests %s and %s", key, other, q.RequestID)
		}
		w.given[key] = q.RequestID
	}
}

// checkLaunch checks that one launch number is one order, and that no request has more
// machines at once than it asked for.
func (w *Watcher) checkLaunch(order lifecycle.LaunchOrder, got []lifecycle.Machine) {
	key := fmt.Sprintf("%s of %s/%s, launch %d", order.RequestID, order.Repository, order.RunID, order.Number)
	if first, ok := w.launches[key]; ok && !w.lost && (first.Token != order.Token || first.Count != order.Count) {
		w.Broken(RuleLaunch, "request %s is made again with another token or count", key)
	}
	w.launches[key] = order
	if len(got) > order.Count {
		w.Broken(RuleLaunch, "request %s gives %d machines for %d", key, len(got), order.Count)
	}
	q, err := w.Truth.Request(engine.Background, order.Repository, order.RunID, order.RequestID)
	if err != nil && w.replaced[order.RequestID] {
		return // it was lost just before the call
	}
	if err != nil {
		w.Broken(RuleLaunch, "request %s is not in the store", key)
	}
	fresh := 0
	for _, m := range got {
		if w.Machines[m.InstanceID] == nil {
			fresh++
		}
	}
	if has := w.outstanding(q); !w.lost && !ahead(q) && fresh > 0 && has+fresh > q.Spec.Count {
		w.Broken(RuleLaunch, "request %s launches %d machines beside %d, and asked for %d", key, fresh, has, q.Spec.Count)
	}
}

// outstanding counts the live machines that a request has, or may still get:
// those it took and those it launched. A host that another caller of the same request has
// claimed and not yet written into the request cannot be known; it is given back later.
func (w *Watcher) outstanding(q lifecycle.Request) int {
	n := 0
	for _, m := range w.Living() {
		if m.State == lifecycle.MachineEnding {
			continue
		}
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		launched := m.RequestID == q.RequestID && m.RunID == q.RunID
		serves := r.RequestID == q.RequestID && r.RunID == q.RunID && r.Repository == q.Repository
		mine := launched && (err != nil || serves && r.Assignment == 1) || serves && q.Has(r.HostKey)
		if mine {
			n++
		}
	}
	return n
}

// Released checks a release: after it no request of the run is open and no record names the
// run. Excepted are the hosts of a later attempt, what was under way when the release began,
// hosts that a job or an operator keeps, those of a fleet that was held since, or that a job kept when the release looked at them, and hosts that were not heard yet.
func (w *Watcher) Released(repository, runID string, attempt int, began time.Time) {
	if w.lost {
		return // a request or a host of the run may be back as it was before
	}
	w.marked(repository, runID, attempt, began)
	records := engine.Must1(w.Truth.ListInstances(engine.Background, lifecycle.Filter{RunID: runID}, lifecycle.PageOf{Limit: 1000})).Items
	for _, r := range records {
		report := engine.Must1(w.Truth.Reports(engine.Background, []string{r.HostKey}))[r.HostKey]
		if r.Repository != repository || attempt > 0 && r.RunAttempt > attempt || report.Busy || w.notHeardYet(r, report, began) || r.Held(began) || w.heldUntil.After(began) || w.of(r.HostKey).idleSince.After(began.Add(-world.MaxLag)) ||
			!w.of(r.HostKey).assignedAt.Before(began.Add(-world.MaxLag)) {
			continue
		}
		w.Broken(RuleReleaseComplete, "%s still has run %s after its release", r.HostKey, runID)
	}
}

func (w *Watcher) marked(repository, runID string, attempt int, began time.Time) {
	requests := engine.Must1(w.Truth.RequestsOfRun(engine.Background, repository, runID))
	for _, q := range requests {
		if attempt > 0 && q.Spec.RunAttempt > attempt || !w.writtenAt[q.RequestID].Before(began.Add(-clockSlack)) {
			continue
		}
		if !q.Released() {
			w.Broken(RuleReleaseComplete, "request %s is not marked after a release of its run", q.RequestID)
		}
	}
}

// ahead reports whether a request is for the hosts that a pool launches ahead of need.
func ahead(q lifecycle.Request) bool {
	return q.Kind == lifecycle.RequestWarm || q.Kind == lifecycle.RequestStopped
}

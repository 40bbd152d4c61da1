package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func (w *world) requestCreated(q lifecycle.Request) {
	w.rules.writtenAt[q.RequestID] = w.now
	w.lag.request(q)
	w.tell(w.who(), "creates", "request "+requestLine(q))
	w.script.request(lifecycle.Request{}, q)
}

func requestLine(q lifecycle.Request) string {
	launch := "-"
	if q.Launch != nil {
		launch = fmt.Sprintf("%d of %d", q.Launch.Number, q.Launch.Count)
	}
	taken := ""
	for _, t := range q.Taken {
		taken += " " + short(t.HostKey)
	}
	return fmt.Sprintf("%s v%d outcome %q taken%s launch %s launches %d released %s due %s: %s", q.RequestID, q.Version, q.Outcome,
		taken, launch, q.Launches, sinceEpoch(q.ReleasedAt), sinceEpoch(q.DueAt), q.Reason)
}

// requestWritten holds a write of a request against the rules.
func (w *world) requestWritten(before, after lifecycle.Request) {
	w.lag.request(after)
	w.tell(w.who(), "writes", "request "+requestLine(after))
	w.script.request(before, after)
	switch {
	case after.Version != before.Version+1:
		w.broken(RuleVersion, "request %s goes from version %d to %d", after.RequestID, before.Version, after.Version)
	case before.Settled() && before.Outcome != after.Outcome:
		w.broken(RuleTransition, "request %s goes from outcome %q to %q", after.RequestID, before.Outcome, after.Outcome)
	case before.Released() && !before.ReleasedAt.Equal(after.ReleasedAt):
		w.broken(RuleTransition, "request %s is released twice", after.RequestID)
	}
	if before.Settled() != after.Settled() || before.Released() != after.Released() {
		w.rules.settledAt[after.RequestID] = w.now
	}
	if before.Settled() {
		return
	}
	if strings.HasSuffix(w.current.name, " sweep") {
		w.mark(markTakeover)
	}
	if before.Launch == nil && after.Launch != nil && !lifecycle.IsWarm(after.RunID) {
		w.checkReuse(after)
	}
	switch after.Outcome {
	case lifecycle.OutcomeReady:
		w.mark(markReady)
		w.checkCommitted(after)
	case lifecycle.OutcomeShort:
		w.mark(markShort)
	case lifecycle.OutcomeReleased:
		w.mark(markReleased)
	}
}

// checkCommitted checks that the hosts of a committed request were ready for it, and are enough.
func (w *world) checkCommitted(q lifecycle.Request) {
	if n := len(q.Taken); n < q.Spec.MinimumCount || n > q.Spec.Count {
		w.broken(RuleReady, "request %s is settled with %d hosts, asked for %d to %d", q.RequestID, n, q.Spec.MinimumCount, q.Spec.Count)
	}
	for _, t := range q.Taken {
		if !w.rules.of(t.HostKey).readyFor[q.RequestID] {
			w.broken(RuleReady, "request %s is settled with %s, which was never ready for it", q.RequestID, t.HostKey)
		}
	}
}

// provisioned checks that no assignment of a host is given to two requests.
func (w *world) provisioned(q lifecycle.Request, hosts []lifecycle.Record) {
	for _, h := range hosts {
		if h.State != lifecycle.StateRunning || h.RunID != q.RunID || h.Repository != q.Repository {
			w.broken(RuleTwiceGiven, "request %s is given %s, which is %s of run %s", q.RequestID, h.HostKey, h.Condition(), h.RunID)
		}
		key := fmt.Sprintf("%s %d", h.HostKey, h.Assignment)
		if other, ok := w.rules.given[key]; ok && other != q.RequestID {
			w.broken(RuleTwiceGiven, "%s is given to requests %s and %s", key, other, q.RequestID)
		}
		w.rules.given[key] = q.RequestID
	}
}

// checkLaunch checks that one launch number is one order, and that no request has more
// machines at once than it asked for.
func (w *world) checkLaunch(order lifecycle.LaunchOrder, got []lifecycle.Machine) {
	key := fmt.Sprintf("%s of %s/%s, launch %d", order.RequestID, order.Repository, order.RunID, order.Number)
	if first, ok := w.rules.launches[key]; ok && (first.Token != order.Token || first.Count != order.Count) {
		w.broken(RuleLaunch, "request %s is made again with another token or count", key)
	}
	w.rules.launches[key] = order
	if len(got) > order.Count {
		w.broken(RuleLaunch, "request %s gives %d machines for %d", key, len(got), order.Count)
	}
	q, err := w.truth.Request(background, order.Repository, order.RunID, order.RequestID)
	if err != nil {
		w.broken(RuleLaunch, "request %s is not in the store", key)
	}
	fresh := 0
	for _, m := range got {
		if w.machines[m.InstanceID] == nil {
			fresh++
		}
	}
	if has := w.outstanding(q); !lifecycle.IsWarm(q.RunID) && fresh > 0 && has+fresh > q.Spec.Count {
		w.broken(RuleLaunch, "request %s launches %d machines beside %d, and asked for %d", key, fresh, has, q.Spec.Count)
	}
}

// outstanding counts the live machines that a request has, or may still get:
// those it took and those it launched. A host that another caller of the same request has
// claimed and not yet written into the request cannot be known; it is given back later.
func (w *world) outstanding(q lifecycle.Request) int {
	n := 0
	for _, m := range w.living() {
		if m.State == lifecycle.MachineEnding {
			continue
		}
		r, err := w.truth.Instance(background, m.HostKey)
		launched := m.RequestID == q.RequestID && m.RunID == q.RunID
		serves := r.RequestID == q.RequestID && r.RunID == q.RunID && r.Repository == q.Repository
		mine := launched && (err != nil || serves) || serves && q.Has(r.HostKey)
		if mine {
			n++
		}
	}
	return n
}

// released checks a release: after it no request of the run is open and no record names the
// run. Excepted are the hosts of a later attempt, what was under way when the release began,
// and hosts that a job or an operator keeps.
func (w *world) released(repository, runID string, attempt int, began time.Time) {
	w.marked(repository, runID, attempt, began)
	records := must1(w.truth.ListInstances(background, lifecycle.Filter{RunID: runID}, lifecycle.PageOf{Limit: 1000})).Items
	for _, r := range records {
		reports := must1(w.truth.Reports(background, []string{r.HostKey}))
		if r.Repository != repository || attempt > 0 && r.RunAttempt > attempt || reports[r.HostKey].Busy || r.Held(began) ||
			!w.rules.of(r.HostKey).assignedAt.Before(began.Add(-maxLag)) {
			continue
		}
		w.broken(RuleReleaseComplete, "%s still has run %s after its release", r.HostKey, runID)
	}
}

func (w *world) marked(repository, runID string, attempt int, began time.Time) {
	requests := must1(w.truth.RequestsOfRun(background, repository, runID))
	for _, q := range requests {
		if attempt > 0 && q.Spec.RunAttempt > attempt || !w.rules.writtenAt[q.RequestID].Before(began.Add(-clockSlack)) {
			continue
		}
		if !q.Released() {
			w.broken(RuleReleaseComplete, "request %s is not marked after a release of its run", q.RequestID)
		}
	}
}

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// table is the lifecycle of docs/design.md#the-lifecycle, written down once more: from a
// condition to the conditions that may follow. Writes that change no state are
// always allowed.
var table = map[string][]string{
	"created":          {"running", "terminated"},
	"running":          {"idle (releasing)", "terminated"},
	"idle (releasing)": {"idle (pooled)", "terminated"},
	"idle (pooled)":    {"claimed", "terminated"},
	"claimed":          {"running", "idle (releasing)", "terminated"},
}

func (w *world) recordCreated(r lifecycle.Record) {
	w.rules.of(r.HostKey).assignedAt = w.now
	w.lag.record(r)
	w.rules.of(r.HostKey).served(r)
	w.tell(w.who(), "creates", r.HostKey+" "+recordLine(r))
	w.script.record(lifecycle.Record{}, r)
	w.coverage.Actions[lifecycle.ActionLaunch]++
	fresh := r.Releasing() && r.Unused() && r.RunID == ""
	if r.State != lifecycle.StateCreated && !fresh || r.Assignment != 1 || r.Version != 1 {
		w.broken(RuleTransition, "%s begins its life %s", r.HostKey, recordLine(r))
	}
	w.checkDue(r)
	w.checkLimits()
}

// recordWritten holds a write of a record against the rules.
func (w *world) recordWritten(before, after lifecycle.Record) {
	w.lag.record(after)
	w.tell(w.who(), "writes", after.HostKey+" "+recordLine(after))
	w.script.record(before, after)
	l := w.rules.of(after.HostKey)
	from, to := before.Condition(), after.Condition()
	moved := from != to
	assigned := before.RunID != after.RunID || (moved && to == "terminated")
	switch {
	case after.Version != before.Version+1:
		w.broken(RuleVersion, "%s goes from version %d to %d", after.HostKey, before.Version, after.Version)
	case moved && !slices.Contains(table[from], to):
		w.broken(RuleTransition, "%s goes from %s to %s", after.HostKey, from, to)
	case assigned && after.Assignment != before.Assignment+1, !assigned && after.Assignment != before.Assignment:
		w.broken(RuleAssignment, "%s goes from assignment %d (run %q) to %d (run %q)",
			after.HostKey, before.Assignment, before.RunID, after.Assignment, after.RunID)
	case after.TrustKey != before.TrustKey && !(before.Unused() && to == "claimed"):
		w.broken(RuleTrust, "%s goes from trust key %q to %q", after.HostKey, before.TrustKey, after.TrustKey)
	}
	if assigned {
		l.assignedAt = w.now
		w.checkLimits()
	}
	l.served(after)
	if moved {
		w.moved(l, before, after)
	} else {
		w.stayed(before, after)
	}
	w.checkDue(after)
}

// moved holds a change of state against the rules.
func (w *world) moved(l *life, before, after lifecycle.Record) {
	switch after.Condition() {
	case "running":
		w.coverage.Actions[lifecycle.ActionReady]++
		l.readyAt, l.maxRuntime = w.now, after.MaxRuntime
		l.readyFor[after.RequestID] = true
		w.checkReady(after)
	case "idle (releasing)":
		if before.State == lifecycle.StateClaimed {
			w.coverage.Actions[lifecycle.ActionReturn]++
		} else {
			w.coverage.Actions[lifecycle.ActionRelease]++
		}
	case "idle (pooled)":
		w.coverage.Actions[lifecycle.ActionPool]++
		l.pooledAt = w.now
		w.checkPooled(after)
	case "claimed":
		w.coverage.Actions[lifecycle.ActionClaim]++
		w.mark(markReused)
		if before.Unused() {
			w.mark(markBound)
		}
		w.checkClaim(before, after)
	case "terminated":
		w.coverage.Actions[lifecycle.ActionTerminate]++
		l.ended = after.Reason
		w.checkTerminated(l, before)
	}
}

// stayed holds a write that changed no state against the rules, and counts it.
func (w *world) stayed(before, after lifecycle.Record) {
	switch {
	case after.State == lifecycle.StateTerminated && after.DueAt.IsZero() && !before.DueAt.IsZero():
		w.coverage.Actions[lifecycle.ActionForget]++
		if m := w.machines[after.InstanceID]; m != nil && m.State != lifecycle.MachineGone {
			w.broken(RuleForget, "%s is forgotten while its machine is %s", after.HostKey, m.State)
		}
	case !after.Releasing():
	case after.Registration != nil && (before.Registration == nil || *before.Registration != *after.Registration):
		w.coverage.Actions[lifecycle.ActionProvideToken]++
	case after.Threshold.Equal(before.Threshold):
	case after.Threshold.Equal(after.RuntimeEndsAt):
		w.coverage.Actions[lifecycle.ActionDrain]++
	case after.ReleasedAt.After(before.ReleasedAt):
		w.coverage.Actions[lifecycle.ActionReleaseClock]++
	default:
		w.coverage.Actions[lifecycle.ActionExtend]++
	}
}

// clockSlack is how far the clocks of replicas and the world may differ.
const clockSlack = 2 * time.Second

// checkDue checks that a live host is due at its threshold at the latest. A busy one past its
// threshold is due again and again, a held one after its hold.
func (w *world) checkDue(r lifecycle.Record) {
	if r.State == lifecycle.StateTerminated {
		return
	}
	p := w.pools[r.Pool].Policy
	limit := r.Threshold
	for _, t := range []time.Time{r.Hold, w.now.Add(p.DrainPoll + clockSlack)} {
		if t.After(limit) {
			limit = t
		}
	}
	if r.DueAt.IsZero() || r.DueAt.After(limit) || r.Threshold.IsZero() {
		w.broken(RuleDue, "%s is due at %s, its threshold is %s", r.HostKey, sinceEpoch(r.DueAt), sinceEpoch(r.Threshold))
	}
}

// checkReady checks that a running host has registered for its assignment.
func (w *world) checkReady(r lifecycle.Record) {
	m := w.machines[r.InstanceID]
	if m == nil || m.host == nil {
		w.broken(RuleReady, "%s is running and never booted", r.HostKey)
	}
	if !m.host.hostile && !m.host.registered[r.Assignment] {
		w.broken(RuleReady, "%s is running and never registered for assignment %d", r.HostKey, r.Assignment)
	}
}

// checkPooled checks that a pooled host was cleaned and runs nothing.
func (w *world) checkPooled(r lifecycle.Record) {
	if w.pools[r.Pool].Policy.Reuse == lifecycle.ReuseNone && !r.Unused() {
		w.broken(RuleTrust, "%s is pooled and its pool reuses no host", r.HostKey)
	}
	m := w.machines[r.InstanceID]
	if m == nil || m.host == nil || !m.host.alive || m.host.hostile {
		return
	}
	switch h := m.host; {
	case h.worker != nil:
		w.broken(RulePooledDirty, "%s is pooled while %s runs", r.HostKey, h.worker)
	case h.dirty || !h.cleaned[r.Assignment]:
		w.broken(RulePooledDirty, "%s is pooled and was not cleaned in assignment %d", r.HostKey, r.Assignment)
	}
}

// checkCondition checks that a claim takes effect only under its whole condition.
func (w *world) checkCondition(c lifecycle.Claim, before lifecycle.Record) {
	margin := w.pools[before.Pool].Policy.ClaimMargin
	switch {
	case before.Assignment != c.Assignment:
		w.broken(RuleClaim, "%s of assignment %d is claimed by a message of assignment %d", before.HostKey, before.Assignment, c.Assignment)
	case !before.Threshold.After(c.Now.Add(margin)):
		w.broken(RuleClaim, "%s is claimed %s before its threshold", before.HostKey, before.Threshold.Sub(c.Now))
	}
}

func (w *world) checkClaim(before, after lifecycle.Record) {
	pool := w.pools[after.Pool]
	if key := pool.Policy.Reuse.TrustKey(after.Repository); key != after.TrustKey {
		w.broken(RuleTrust, "%s of trust key %q serves %s", after.HostKey, after.TrustKey, after.Repository)
	}
	switch now := w.now; {
	case before.Retiring:
		w.broken(RuleClaim, "%s is claimed while retiring", after.HostKey)
	case before.Hold.After(now.Add(clockSlack)):
		w.broken(RuleHeld, "%s is claimed while held", after.HostKey)
	case after.Uses != before.Uses+1 || (pool.Policy.MaxUses > 0 && after.Uses > pool.Policy.MaxUses):
		w.broken(RuleClaim, "%s serves its run number %d", after.HostKey, after.Uses)
	}
}

func (w *world) why(l *life) string { return fmt.Sprintf("reason %q", l.ended) }

package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// table is the lifecycle of docs/design.md#the-lifecycle, written down once more: from a
// condition to the conditions that may follow. Writes that change no state are
// always allowed.
var table = map[string][]string{
	"created":          {"running", "terminated"},
	"running":          {"idle (releasing)", "terminated"},
	"idle (releasing)": {"idle (pooled)", "idle (resetting)", "terminated"},
	"idle (resetting)": {"idle (releasing)", "terminated"},
	"idle (pooled)":    {"claimed", "idle (releasing)", "idle (stopped)", "terminated"},
	"idle (stopped)":   {"claimed", "terminated"},
	"claimed":          {"running", "idle (releasing)", "idle (stopped)", "terminated"},
}

func (w *Watcher) recordCreated(r lifecycle.Record) {
	w.of(r.HostKey).assignedAt = w.Now
	w.of(r.HostKey).served(r)
	w.Coverage.Actions[lifecycle.ActionLaunch]++
	fresh := r.Releasing() && r.Unused() && r.RunID == ""
	if r.State != lifecycle.StateCreated && !fresh || r.Assignment != 1 || r.Version != 1 {
		w.Broken(RuleTransition, "%s begins its life %s", r.HostKey, world.RecordLine(r))
	}
	w.checkDue(r)
	w.checkLimits()
}

// recordWritten holds a write of a record against the rules.
func (w *Watcher) recordWritten(before, after lifecycle.Record) {
	if before.Version == 0 {
		w.recordCreated(after)
		return
	}
	l := w.of(after.HostKey)
	from, to := before.Condition(), after.Condition()
	moved := from != to
	assigned := before.RunID != after.RunID || (moved && to == "terminated") || leavesStandby(before, after) || from == "idle (resetting)" && moved && to != "terminated"
	switch {
	case after.Version != before.Version+1:
		w.Broken(RuleVersion, "%s goes from version %d to %d", after.HostKey, before.Version, after.Version)
	case moved && !slices.Contains(table[from], to):
		w.Broken(RuleTransition, "%s goes from %s to %s", after.HostKey, from, to)
	case assigned && after.Assignment != before.Assignment+1, !assigned && after.Assignment != before.Assignment:
		w.Broken(RuleAssignment, "%s goes from assignment %d (run %q) to %d (run %q)",
			after.HostKey, before.Assignment, before.RunID, after.Assignment, after.RunID)
	case after.TrustKey != before.TrustKey && !(before.Unused() && to == "claimed") && !(before.Resetting() && after.Renewed() && after.TrustKey == ""):
		w.Broken(RuleTrust, "%s goes from trust key %q to %q", after.HostKey, before.TrustKey, after.TrustKey)
	}
	if assigned {
		l.assignedAt, l.forRun = w.Now, after.RunID != ""
		if before.RunID != after.RunID && after.RunID != "" {
			l.claimedAt = w.Now
		}
		w.checkLimits()
	}
	l.served(after)
	w.standbyWritten(l, before, after)
	w.restWritten(before, after)
	w.cachesWritten(l, before, after)
	w.checkMetered(l, before, after)
	if moved {
		w.moved(l, before, after)
	} else {
		w.stayed(before, after)
	}
	w.checkDue(after)
}

// moved holds a change of state against the rules.
func (w *Watcher) moved(l *history, before, after lifecycle.Record) {
	switch after.Condition() {
	case "running":
		w.Coverage.Actions[lifecycle.ActionReady]++
		l.readyAt, l.maxRuntime = w.Now, after.MaxRuntime
		l.readyFor[after.RequestID] = true
		w.checkReady(after)
	case "idle (releasing)":
		switch {
		case before.Resetting():
			w.Coverage.Actions[lifecycle.ActionConfirmReset]++
			w.checkRenewed(before, after)
		case before.Pooled():
			w.Coverage.Actions[lifecycle.ActionLeaveStandby]++
		case before.State == lifecycle.StateClaimed:
			w.Coverage.Actions[lifecycle.ActionReturn]++
		default:
			w.Coverage.Actions[lifecycle.ActionRelease]++
		}
	case "idle (pooled)":
		w.Coverage.Actions[lifecycle.ActionPool]++
		l.pooledAt = w.Now
		w.checkPooled(after)
	case "idle (resetting)":
		w.Coverage.Actions[lifecycle.ActionReset]++
		w.checkReset(after)
	case "idle (stopped)":
		w.Coverage.Actions[lifecycle.ActionStop]++
		w.checkStopped(before, after)
	case "claimed":
		w.checkRoots(after)
		if before.Stopped() {
			w.Coverage.Actions[lifecycle.ActionStart]++
			w.checkStarted(before, after)
			return
		}
		w.Coverage.Actions[lifecycle.ActionClaim]++
		w.Mark(engine.MarkReused)
		if before.Unused() {
			w.Mark(engine.MarkBound)
		}
		w.checkClaim(before, after)
	case "terminated":
		w.Coverage.Actions[lifecycle.ActionTerminate]++
		l.ended = after.Reason
		w.checkTerminated(l, before)
		w.checkManySilent(l, before, after)
	}
}

// stayed holds a write that changed no state against the rules, and counts it.
func (w *Watcher) stayed(before, after lifecycle.Record) {
	w.checkMark(before, after)
	switch {
	case after.State == lifecycle.StateTerminated && after.DueAt.IsZero() && !before.DueAt.IsZero():
		w.Coverage.Actions[lifecycle.ActionForget]++
		if m := w.Machines[after.InstanceID]; m != nil && m.State != lifecycle.MachineGone {
			w.Broken(RuleForget, "%s is forgotten while its machine is %s", after.HostKey, m.State)
		}
	case after.Resetting() && after.RootVolume.Task != before.RootVolume.Task:
		w.Coverage.Actions[lifecycle.ActionBeginReset]++
	case !after.Releasing():
	case after.Registration != nil && (before.Registration == nil || *before.Registration != *after.Registration):
		w.Coverage.Actions[lifecycle.ActionProvideToken]++
	case after.Threshold.Equal(before.Threshold):
	case after.Threshold.Equal(after.RuntimeEndsAt):
		w.Coverage.Actions[lifecycle.ActionDrain]++
	case after.ReleasedAt.After(before.ReleasedAt):
		w.Coverage.Actions[lifecycle.ActionReleaseClock]++
	default:
		w.Coverage.Actions[lifecycle.ActionExtend]++
	}
}

// clockSlack is how far the clocks of replicas and the world may differ.
const clockSlack = 2 * time.Second

// checkDue checks that a live host is due at its threshold at the latest. A busy one past its
// threshold is due again and again, a held one after its hold.
func (w *Watcher) checkDue(r lifecycle.Record) {
	if r.State == lifecycle.StateTerminated {
		return
	}
	p := w.Pools[r.Pool].Policy
	limit := r.Threshold
	for _, t := range []time.Time{r.Hold, w.Now.Add(p.DrainPoll + clockSlack)} {
		if t.After(limit) {
			limit = t
		}
	}
	if r.DueAt.IsZero() || r.DueAt.After(limit) || r.Threshold.IsZero() {
		w.Broken(RuleDue, "%s is due at %s, its threshold is %s", r.HostKey, engine.SinceEpoch(r.DueAt), engine.SinceEpoch(r.Threshold))
	}
}

// checkReady checks that a running host has registered for its assignment.
func (w *Watcher) checkReady(r lifecycle.Record) {
	m := w.Machines[r.InstanceID]
	if m == nil || m.Host == nil {
		w.Broken(RuleReady, "%s is running and never booted", r.HostKey)
	}
	if l := w.of(r.HostKey); l.wasReplaced() {
		if run := l.registeredFor[r.Assignment]; !m.Host.Hostile && !waits(r) && !l.forgot(r.Assignment) && run != lifecycle.RunKey(r.Repository, r.RunID) {
			w.Broken(RuleReady, "%s is ready for %s in assignment %d, and has registered for %q", r.HostKey, r.RunID, r.Assignment, run)
		}
		return
	}
	w.checkLabeled(r)
	if !m.Host.Hostile && !w.registered(m.Host, r.Assignment) {
		w.Broken(RuleReady, "%s is running and never registered for assignment %d", r.HostKey, r.Assignment)
	}
}

// checkPooled checks that a pooled host was cleaned and runs nothing.
func (w *Watcher) checkPooled(r lifecycle.Record) {
	if w.Pools[r.Pool].Policy.Reuse == lifecycle.ReuseNone && r.Uses > 0 {
		w.Broken(RuleTrust, "%s is pooled and its pool reuses no host", r.HostKey)
	}
	w.checkRoot(r)
	if r.Retiring {
		w.Broken(RuleDrained, "%s is pooled while retiring: %s", r.HostKey, r.RetiringReason)
	}
	m := w.Machines[r.InstanceID]
	if m == nil || m.Host == nil || !m.Host.Alive || m.Host.Hostile {
		return
	}
	switch h := m.Host; {
	case h.Worker != nil:
		w.Broken(RulePooledDirty, "%s is pooled while %s runs", r.HostKey, h.Worker)
	case h.Dirty || !h.Cleaned[r.Assignment]:
		w.Broken(RulePooledDirty, "%s is pooled and was not cleaned in assignment %d", r.HostKey, r.Assignment)
	}
}

// checkCondition checks that a claim takes effect only under its whole condition.
func (w *Watcher) checkCondition(c lifecycle.Claim, before lifecycle.Record) {
	margin := w.Pools[before.Pool].Policy.ClaimMargin
	switch {
	case before.Assignment != c.Assignment:
		w.Broken(RuleClaim, "%s of assignment %d is claimed by a message of assignment %d", before.HostKey, before.Assignment, c.Assignment)
	case !before.Threshold.After(c.Now.Add(margin)):
		w.Broken(RuleClaim, "%s is claimed %s before its threshold", before.HostKey, before.Threshold.Sub(c.Now))
	case c.Awake && before.Resting():
		w.Broken(RuleRest, "%s is claimed by a message while it rests", before.HostKey)
	}
}

func (w *Watcher) checkClaim(before, after lifecycle.Record) {
	pool := w.Pools[after.Pool]
	if key := pool.Policy.Reuse.TrustKey(after.Repository); key != after.TrustKey {
		w.Broken(RuleTrust, "%s of trust key %q serves %s", after.HostKey, after.TrustKey, after.Repository)
	}
	switch now := w.Now; {
	case before.Retiring:
		w.Broken(RuleClaim, "%s is claimed while retiring", after.HostKey)
	case before.Hold.After(now.Add(clockSlack)):
		w.Broken(RuleHeld, "%s is claimed while held", after.HostKey)
	case after.Uses != before.Uses+1 || (pool.Policy.MaxUses > 0 && after.Uses > pool.Policy.MaxUses):
		w.Broken(RuleClaim, "%s serves its run number %d", after.HostKey, after.Uses)
	}
}

func (w *Watcher) why(l *history) string { return fmt.Sprintf("reason %q", l.ended) }

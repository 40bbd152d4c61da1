package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// checkTerminated checks that a host ends only for the reasons of the design.
func (w *world) checkTerminated(l *life, before lifecycle.Record) {
	m := w.machines[before.InstanceID]
	if m == nil || m.State == lifecycle.MachineGone || m.State == lifecycle.MachineEnding || m.Impaired || m.ordered {
		return
	}
	if before.Hold.After(w.now.Add(clockSlack)) && !before.FleetHeld {
		w.broken(RuleHeld, "%s is ended while held until %s; %s", before.HostKey, sinceEpoch(before.Hold), w.why(l))
	}
	if m.host != nil && m.host.hostile {
		return
	}
	interrupted := m.host != nil && !m.host.observed.InterruptionAt.IsZero()
	if before.State == lifecycle.StateRunning && !interrupted && !w.scaledDown(before) && before.Threshold.After(w.now.Add(clockSlack)) {
		w.broken(RuleRunningEnded, "%s is ended while running until %s; %s", before.HostKey, sinceEpoch(before.Threshold), w.why(l))
	}
	w.checkBusyEnded(m, l, before)
}

// freshReport bounds the age of the report that a decision to end rests on, besides the time
// for which the replica that decides was suspended.
const freshReport = time.Minute

// checkBusyEnded checks that a replica that ends a host had read that it was not busy, or
// that the job has had its whole runtime.
func (w *world) checkBusyEnded(m *machine, l *life, before lifecycle.Record) {
	if l.busySince.IsZero() || !l.runtimeLeft(before, w.now) {
		return
	}
	a := w.current
	mark := a.reads[before.HostKey]
	if a.allRead.at.After(mark.at) {
		mark = a.allRead
	}
	known := mark.at
	if age := w.now.Sub(mark.at) - (a.stalled - mark.stalled); age > freshReport {
		known = known.Add(age - freshReport)
	}
	if l.busySince.Add(maxLag).Before(known) {
		w.broken(RuleBusyEnded, "%s is ended while busy since %s; %s", before.HostKey, sinceEpoch(l.busySince), w.why(l))
	}
}

// runtimeLeft reports whether the job of the host may still run. When its time began depends
// on how the job came to run.
func (l *life) runtimeLeft(r lifecycle.Record, now time.Time) bool {
	most := r.MaxRuntime
	switch r.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed:
		return now.Add(clockSlack).Before(r.Threshold.Add(most))
	case lifecycle.StateRunning:
		return now.Add(clockSlack).Before(r.Threshold)
	case lifecycle.StateIdle:
		if r.Pooled() {
			return now.Add(clockSlack).Before(r.PooledAt.Add(most))
		}
		if r.RuntimeEndsAt.IsZero() {
			return true
		}
		return now.Add(clockSlack).Before(r.RuntimeEndsAt)
	}
	return false
}

// checkEnd checks that a machine ends after its record, or has no record.
func (w *world) checkEnd(m *machine) {
	w.coverage.Actions[lifecycle.ActionEndMachine]++
	r, err := w.truth.Instance(background, m.HostKey)
	switch {
	case err != nil:
		w.mark(markLeak)
		if w.now.Sub(m.LaunchedAt) < time.Minute {
			w.broken(RuleMachineEnded, "%s is ended as leaked at the age of %s", m.InstanceID, w.now.Sub(m.LaunchedAt))
		}
	case r.State != lifecycle.StateTerminated:
		w.broken(RuleMachineEnded, "%s is ended while its record is %s", m.InstanceID, r.Condition())
	}
}

// agentClock is the largest clock error of an agent that reaches the store: the store's Date
// has whole seconds, and small drifts are not corrected.
const agentClock = 6 * time.Second

// selfEndSlack is the largest clock error of an agent: a clock that is off by 90 s and was
// never corrected, plus the age of what it last read.
const selfEndSlack = 100 * time.Second

// checkPowerOff checks that the agent ends its host only by its own rule.
func (w *world) checkPowerOff(h *host, why string) {
	r, err := w.truth.Instance(background, h.id)
	if err != nil || h.hostile || r.State == lifecycle.StateTerminated {
		return
	}
	useless := h.observed.Prepared.Phase == agent.PhaseFailed && h.worker == nil
	connected := !w.storeAway() && !w.now.Before(h.cutOff) && r.UpdatedAt.Before(w.now.Add(-time.Minute))
	switch {
	case connected && r.Held(w.now.Add(agentClock)):
		w.broken(RuleHeld, "%s ends itself while held: %s", h.id, why)
	case connected && !useless && r.Threshold.After(w.now.Add(agentClock)):
		w.broken(RuleSelfEnd, "%s ends itself %s before its threshold: %s", h.id, r.Threshold.Sub(w.now), why)
	case h.worker != nil && r.State == lifecycle.StateRunning && r.Threshold.After(w.now.Add(selfEndSlack)):
		w.broken(RuleSelfEnd, "%s ends itself under %s: %s", h.id, h.worker, why)
	}
}

// checkDeleteRunner checks that no registration is deleted under a host that uses it, unless
// EC2 takes that host back or scale-down has marked it.
func (w *world) checkDeleteRunner(r *runner) {
	h := r.host
	if !h.alive || h.runner != r || h.hostile || !h.observed.InterruptionAt.IsZero() {
		return
	}
	rec, err := w.truth.Instance(background, h.id)
	if err == nil && rec.RunnerName == r.Name && !rec.ScalingDown() && (rec.State == lifecycle.StateRunning || rec.State == lifecycle.StateClaimed ||
		rec.State == lifecycle.StateCreated) {
		w.broken(RuleUnregistered, "%s is deleted while %s is %s", r.Name, h.id, rec.Condition())
	}
}

package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// checkTerminated checks that a host ends only for the reasons of the design.
func (w *Watcher) checkTerminated(l *history, before lifecycle.Record) {
	m := w.Machines[before.InstanceID]
	if m == nil || m.State == lifecycle.MachineGone || m.State == lifecycle.MachineEnding || m.Impaired || m.Ordered {
		return
	}
	if before.Hold.After(w.Now.Add(clockSlack)) && !before.FleetHeld {
		w.Broken(RuleHeld, "%s is ended while held until %s; %s", before.HostKey, engine.SinceEpoch(before.Hold), w.why(l))
	}
	if m.Host != nil && m.Host.Hostile {
		return
	}
	interrupted := m.Host != nil && !m.Host.Observed.InterruptionAt.IsZero()
	if before.State == lifecycle.StateRunning && !interrupted && !w.scaledDown(before) && before.Threshold.After(w.Now.Add(clockSlack)) {
		w.Broken(RuleRunningEnded, "%s is ended while running until %s; %s", before.HostKey, engine.SinceEpoch(before.Threshold), w.why(l))
	}
	w.checkBusyEnded(m, l, before)
}

// freshReport bounds the age of the report that a decision to end rests on, besides the time
// for which the replica that decides was suspended.
const freshReport = time.Minute

// checkBusyEnded checks that a replica that ends a host had read that it was not busy, or
// that the job has had its whole runtime.
func (w *Watcher) checkBusyEnded(m *world.Machine, l *history, before lifecycle.Record) {
	if l.busySince.IsZero() || !l.replacedLately(w.Now) && !runtimeLeft(before, w.Now) || w.releasedAsBooting(l, before) {
		return
	}
	if w.keptAsRestored(m, before) || m.State == lifecycle.MachineStopped { // checkStop is for the job that ran when it was stopped
		return
	}
	if l.reportLost && (m.Host == nil || m.Host.Worker == nil) {
		return // the store lost the report that it was busy, and its job is over
	}
	if m.Host != nil && m.Host.Worker != nil && l.servesForgotten(m.Host) {
		return // its report is for the assignment of its runner, which is earlier than that of its run
	}
	read := w.Current.LastLook(world.SeesReport(before.HostKey))
	if all := w.Current.LastLook(world.SeesAllReports); all.At.After(read.At) {
		read = all
	}
	known := read.At
	if age := w.AgeOf(read); age > freshReport {
		known = known.Add(age - freshReport)
	}
	if l.busySince.Add(world.MaxLag).Before(known) {
		w.Broken(RuleBusyEnded, "%s is ended while busy since %s; %s", before.HostKey, engine.SinceEpoch(l.busySince), w.why(l))
	}
}

// runtimeLeft reports whether the job of the host may still run. When its time began depends
// on how the job came to run.
func runtimeLeft(r lifecycle.Record, now time.Time) bool {
	most := r.MaxRuntime
	switch r.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed:
		return now.Add(clockSlack).Before(r.Threshold.Add(most))
	case lifecycle.StateRunning:
		return now.Add(clockSlack).Before(r.Threshold)
	case lifecycle.StateIdle:
		if r.Pooled() || r.Stopped() {
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
func (w *Watcher) checkEnd(m *world.Machine) {
	w.Coverage.Actions[lifecycle.ActionEndMachine]++
	r, err := w.Truth.Instance(engine.Background, m.HostKey)
	switch {
	case err != nil && w.of(m.HostKey).ended != "": // its record was lost after that
	case err != nil:
		w.Mark(engine.MarkLeak)
		if w.Now.Sub(m.LaunchedAt) < time.Minute {
			w.Broken(RuleMachineEnded, "%s is ended as leaked at the age of %s", m.InstanceID, w.Now.Sub(m.LaunchedAt))
		}
	case r.State != lifecycle.StateTerminated:
		w.Broken(RuleMachineEnded, "%s is ended while its record is %s", m.InstanceID, r.Condition())
	}
}

// agentClock is the largest clock error of an agent that reaches the store: the store's Date
// has whole seconds, and small drifts are not corrected.
const agentClock = 6 * time.Second

// selfEndSlack is the largest clock error of an agent: a clock that is off by 90 s and was
// never corrected, plus the age of what it last read.
const selfEndSlack = 100 * time.Second

// checkPowerOff checks that the agent ends its host only by its own rule.
func (w *Watcher) checkPowerOff(h *world.Host, why string) {
	r, err := w.Truth.Instance(engine.Background, h.ID)
	if err != nil && w.of(h.ID).wasReplaced() && !h.Hostile {
		w.checkReplacedEnd(h, w.of(h.ID), why)
	}
	if err != nil || h.Hostile || r.State == lifecycle.StateTerminated {
		return
	}
	if l := w.of(h.ID); l.wasReplaced() {
		w.checkReplacedEnd(h, l, why)
		return
	}
	useless := h.Observed.Prepared.Phase == agent.PhaseFailed && h.Worker == nil
	connected := !w.StoreAway() && !w.Now.Before(h.CutOff) && r.UpdatedAt.Before(w.Now.Add(-time.Minute))
	switch {
	case connected && r.Held(w.Now.Add(agentClock)):
		w.Broken(RuleHeld, "%s ends itself while held: %s", h.ID, why)
	case connected && !useless && r.Threshold.After(w.Now.Add(agentClock)):
		w.Broken(RuleSelfEnd, "%s ends itself %s before its threshold: %s", h.ID, r.Threshold.Sub(w.Now), why)
	case h.Worker != nil && r.State == lifecycle.StateRunning && r.Threshold.After(w.Now.Add(selfEndSlack)):
		w.Broken(RuleSelfEnd, "%s ends itself under %s: %s", h.ID, h.Worker, why)
	}
}

// checkDeleteRunner checks that no registration is deleted under a host that uses it, unless
// EC2 takes that host back or scale-down has marked it.
func (w *Watcher) checkDeleteRunner(r *world.Runner) {
	h := r.Host
	if h == nil || !h.Alive || h.Runner != r || h.Hostile || !h.Observed.InterruptionAt.IsZero() {
		return
	}
	rec, err := w.Truth.Instance(engine.Background, h.ID)
	if err == nil && rec.State == lifecycle.StateClaimed && waits(rec) && rec.RunnerName == r.Name {
		return // it registers for its run instead
	}
	if err == nil && rec.JobsOf != "" {
		return // it goes back without a job: GitHub deletes no registration that has one
	}
	if w.of(h.ID).wasReplaced() {
		return // its record may be of an assignment that is over
	}
	if err == nil && rec.RunnerName == r.Name && !rec.ScalingDown() && (rec.State == lifecycle.StateRunning || rec.State == lifecycle.StateClaimed ||
		rec.State == lifecycle.StateCreated || rec.Pooled()) {
		w.Broken(RuleUnregistered, "%s is deleted while %s is %s", r.Name, h.ID, rec.Condition())
	}
}

// scaledDown reports whether scale-down had marked the host as idle or as an orphan.
func (w *Watcher) scaledDown(r lifecycle.Record) bool { return r.ScalingDown() || r.Orphan() }

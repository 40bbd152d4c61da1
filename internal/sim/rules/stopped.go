package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// checkStopped checks which hosts are stopped: those that waited for their idle time or were launched for that, and those that a run took and
// did not get to start.
func (w *Watcher) checkStopped(before, after lifecycle.Record) {
	p := w.Pools[after.Pool].Policy
	switch {
	case !p.MayStop():
		w.Broken(RuleStopped, "%s is stopped, and its pool stops none", after.HostKey)
	case after.UsageClass != lifecycle.UsageOnDemand, after.Unused() && !after.ToStop, after.Standby != nil, after.RunnerName != "":
		w.Broken(RuleStopped, "%s is stopped: %s, uses %d, runner %q", after.HostKey, after.UsageClass, after.Uses, after.RunnerName)
	case before.Pooled() && !before.StopsNext() && before.Threshold.After(w.Now.Add(clockSlack)):
		w.Broken(RuleStopped, "%s is stopped before its idle time is over at %s", after.HostKey, engine.SinceEpoch(before.Threshold))
	case before.Held(w.Now.Add(clockSlack)) && before.Pooled() && !before.FleetHeld:
		w.Broken(RuleStopped, "%s is stopped while it is held until %s", after.HostKey, engine.SinceEpoch(before.Hold))
	}
}

// checkStarted checks that a run gets a host as a claim gives it, and only one whose machine had stopped. A job may be on it if its record is
// an older state.
func (w *Watcher) checkStarted(before, after lifecycle.Record) {
	w.checkClaim(before, after)
	m := w.Machines[before.InstanceID]
	if before.Stop.StoppedAt.IsZero() {
		w.Broken(RuleStopped, "%s is taken by run %s before its machine has stopped", before.HostKey, after.RunID)
	}
	if m != nil && m.Host != nil && m.Host.Worker != nil && !w.of(before.HostKey).wasReplaced() {
		w.Broken(RuleStopped, "%s is taken by run %s, and a job is on it", before.HostKey, after.RunID)
	}
	if !before.InterruptionAt.IsZero() {
		w.Broken(RuleStopped, "%s is taken by run %s although it leaves", before.HostKey, after.RunID)
	}
}

// stoodStill is how long a process may stand still before it stops a machine. In less time no machine stops and starts again for a run.
const stoodStill = time.Minute

// checkStop checks that the machine of no other host is stopped, and none under a job, whatever its record says. A process that stood still
// after its decision may know neither.
func (w *Watcher) checkStop(id string, hibernate bool) {
	w.Coverage.Actions[lifecycle.ActionStopMachine]++
	m := w.Machines[id]
	if m == nil {
		return
	}
	late := w.Stood("stop machine") > stoodStill
	if !late && m.Host != nil && m.Host.Worker != nil && m.Host.Alive && !m.Host.Hostile {
		w.Broken(RuleStopped, "the machine of %s is stopped under a job", m.HostKey)
	}
	r, err := w.Truth.Instance(engine.Background, m.HostKey)
	if err != nil || w.of(m.HostKey).wasReplaced() {
		return // its record was lost, or is an older state
	}
	if !late && !r.Stopped() && w.Now.Sub(w.of(m.HostKey).assignedAt) >= restLag {
		w.Broken(RuleStopped, "the machine of %s is stopped, which is %s", m.HostKey, r.Condition())
	}
	if hibernate && m.Host != nil && !m.Host.Hostile && r.Stopped() && !m.Host.Cleaned[r.Assignment] {
		w.Broken(RuleStopped, "the machine of %s is hibernated, and was not cleaned in assignment %d", m.HostKey, r.Assignment)
	}
}

// checkHibernated checks that nothing of a run or a registration is in the memory that is written, and that its host is one that was to be stopped.
func (w *Watcher) checkHibernated(m *world.Machine) {
	h := m.Host
	if h.Hostile || w.of(m.HostKey).wasReplaced() {
		return
	}
	switch {
	case h.Worker != nil, h.Observed.Registration, h.Runner != nil && h.Runner.Online, h.Dirty:
		w.Broken(RuleStopped, "%s is hibernated with %v in its memory, registered %t, dirty %t", m.HostKey, h.Worker, h.Observed.Registration, h.Dirty)
	case h.ReadRun != "":
		w.Broken(RuleStopped, "%s is hibernated, and its agent has what it read for run %s", m.HostKey, h.ReadRun)
	case m.UsageClass != lifecycle.UsageOnDemand:
		w.Broken(RuleStopped, "%s is hibernated, and is %s", m.HostKey, m.UsageClass)
	}
}

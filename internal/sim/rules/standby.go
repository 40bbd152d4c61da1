package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// leavesStandby reports whether a write ends a registration ahead of need that the host will not use, which begins another
// assignment.
func leavesStandby(before, after lifecycle.Record) bool {
	left := before.Pooled() && after.Releasing()
	reregisters := before.State == lifecycle.StateClaimed && after.State == lifecycle.StateClaimed &&
		waits(before) && !waits(after)
	return left || reregisters
}

// waits reports whether the host waits for a run with a registration, or serves one by it.
func waits(r lifecycle.Record) bool { return r.Standby != nil && !r.Standby.Discarded }

// hotID is the id of the runner with which the host waits for a run, or by which it serves one; 0: it is not known.
func hotID(r lifecycle.Record) int64 {
	if r.Standby == nil {
		return 0
	}
	return r.Standby.RunnerID
}

// standbyWritten notes which run is served by which registration, and counts what comes of standbys.
func (w *Watcher) standbyWritten(l *history, before, after lifecycle.Record) {
	switch {
	case leavesStandby(before, after) && after.State == lifecycle.StateClaimed:
		w.Coverage.Actions[lifecycle.ActionReregister]++
	case before.Warming() && after.Hot():
		w.Coverage.Actions[lifecycle.ActionStandBy]++
		w.checkStandby(after)
	case before.Warming() && after.State == lifecycle.StateClaimed:
		w.Mark(engine.MarkClaimedWarm)
	}
	if !waits(after) || after.RunID == "" {
		return
	}
	of, run := after.Standby.Assignment, lifecycle.RunKey(after.Repository, after.RunID)
	if other := l.byStandby[of]; other != "" && other != run && !l.wasReplaced() {
		w.Broken(RuleStandby, "%s serves %s by the registration of assignment %d, which served %s", after.HostKey, run, of, other)
	}
	l.byStandby[of], l.registeredAs[after.Assignment] = run, of
}

// registered reports whether the host has registered for the assignment, or serves it by an earlier registration.
func (w *Watcher) registered(h *world.Host, assignment int64) bool {
	of, ahead := w.of(h.ID).registeredAs[assignment]
	return h.Registered[assignment] || ahead && h.Registered[of]
}

// unclaimed reports whether the record of the host says that no run has it.
func (w *Watcher) unclaimed(h *world.Host) bool {
	r, err := w.Truth.Instance(engine.Background, h.ID)
	return err == nil && r.Pooled()
}

// checkStandby checks that the runner that a hot host is said to have is its own.
func (w *Watcher) checkStandby(r lifecycle.Record) {
	if w.of(r.HostKey).wasReplaced() {
		return
	}
	if runner := w.GitHub.ByID(r.Repository, hotID(r)); runner != nil && (runner.Host == nil || runner.Host.ID != r.InstanceID || runner.Name != r.RunnerName) {
		w.Broken(RuleStandby, "%s waits with runner %d, which is %s", r.HostKey, hotID(r), runner.Name)
	}
	if r.JobsOf != "" || r.Unused() {
		w.Broken(RuleStandby, "%s waits with a registration, and no run may use that", r.HostKey)
	}
}

// checkLabels checks that a runner gets the labels of a run only after the run has claimed its host while it listened.
func (w *Watcher) checkLabels(runner *world.Runner, labels []string) {
	run := lifecycle.RunKey(runner.Repository, labels[0])
	w.labeled[runner.ID] = run
	of, ok := runnername.AssignmentOf(runner.Name)
	if runner.Host != nil && w.of(runner.Host.ID).wasReplaced() {
		return
	}
	if runner.Host == nil || !ok {
		w.Broken(RuleLabels, "%s gets the labels of %s, and is not a runner that waits for a run", runner.Name, run)
	}
	if claimed := w.of(runner.Host.ID).byStandby[of]; claimed != run {
		w.Broken(RuleLabels, "%s gets the labels of %s, and was claimed by %q", runner.Name, run, claimed)
	}
}

// checkLabeled checks that a host that becomes ready by the registration that it waited with has the labels of its run. A
// runner that was given a job that names none of its labels is an exception: GitHub does not do that as far as we know,
// and a busy host is taken for one whose labels are set.
func (w *Watcher) checkLabeled(r lifecycle.Record) {
	if !waits(r) {
		return
	}
	w.Mark(engine.MarkHotReady)
	runner, id := w.Machines[r.InstanceID].Host.Runner, hotID(r)
	if id == 0 && runner != nil {
		id = runner.ID // a job runs, and GitHub said that it does not know the runner
	}
	if run := lifecycle.RunKey(r.Repository, r.RunID); w.labeled[id] != run && (runner == nil || !runner.Stray) {
		w.Broken(RuleLabels, "%s is ready for %s and its runner has the labels of %q", r.HostKey, run, w.labeled[id])
	}
}

// hotAfter is how long after the end of the faults every hot host listens or has stopped being hot.
const hotAfter = 4 * time.Minute

// checkListening checks that a host that has been hot for a while listens, so that a run that claims it finds it ready. One that an operator holds stays as it
// is, and no run claims it.
func (w *Watcher) checkListening() {
	if w.CalmSince.IsZero() || w.Now.Sub(w.CalmSince) < hotAfter {
		return
	}
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || w.of(m.HostKey).wasReplaced() || !r.Hot() || r.Held(w.Now) || w.Now.Sub(r.UpdatedAt) < hotAfter || m.State != lifecycle.MachineRunning || m.Host == nil || m.Host.Hostile {
			continue
		}
		runner := w.GitHub.ByID(r.Repository, hotID(r))
		if runner == nil || !runner.Online {
			w.Broken(RuleNotListening, "%s is hot since %s, and its runner %s does not listen", r.HostKey, engine.SinceEpoch(r.UpdatedAt), r.RunnerName)
		}
	}
}

package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// checkReport checks that the agent of an honest host signals only what it did.
func (w *Watcher) checkReport(h *world.Host, p lifecycle.Report) {
	if h.Hostile {
		return
	}
	r, err := w.Truth.Instance(engine.Background, h.ID)
	l := w.of(h.ID)
	switch {
	case err != nil:
		return
	case l.wasReplaced():
	case p.Assignment < l.reportedFor:
		w.Broken(RuleFalseSignal, "%s reports for assignment %d after it did for %d", h.ID, p.Assignment, l.reportedFor)
	case p.Assignment > r.Assignment:
		w.Broken(RuleFalseSignal, "%s reports for assignment %d, its record has %d", h.ID, p.Assignment, r.Assignment)
	case p.Signal == lifecycle.SignalRegOK && !w.registered(h, p.Assignment):
		w.Broken(RuleFalseSignal, "%s signals %s for assignment %d and never registered for it", h.ID, p.Signal, p.Assignment)
	case p.Signal == lifecycle.SignalRemoveRegOK && !h.Cleaned[p.Assignment]:
		w.Broken(RuleFalseSignal, "%s signals %s for assignment %d and was not cleaned in it", h.ID, p.Signal, p.Assignment)
	}
	l.reportedFor = p.Assignment
}

// checkJob checks that a job begins only on a host of its run.
func (w *Watcher) checkJob(h *world.Host, j *world.Job) {
	if h.AllowsOne(j) {
		return // GitHub chooses which job a job-scoped host gets
	}
	key := lifecycle.RunKey(j.Repository, j.RunID)
	l := w.of(h.ID)
	assignment := h.Observed.Listener.Assignment
	own := l.registeredFor[assignment] == key || l.byStandby[assignment] == key
	switch {
	case w.unclaimed(h) && !(own && (l.wasReplaced() || h.Hostile)): // a job that forges its host's report may hurt its own run
		w.Broken(RuleUnclaimedJob, "%s begins on %s, which no run has claimed", j, h.ID)
	case l.wasReplaced() && l.registeredFor[assignment] != key && l.byStandby[assignment] == "",
		!l.wasReplaced() && l.runOf(assignment) != key:
		w.Broken(RuleForeignJob, "%s begins on %s, whose assignment %d is %s", j, h.ID, assignment, l.runOf(assignment))
	case h.LastRun != "" && h.LastRun != key:
		w.Broken(RuleDirtyHost, "%s begins on %s, which was not cleaned since %s", j, h.ID, h.LastRun)
	}
	if h.Runner == nil || h.Runner.Deleted {
		w.Broken(RuleLateJob, "%s begins on %s, whose runner is no longer registered", j, h.ID)
	}
}

// checkRefused checks that the hook refuses only jobs of other runs, and jobs of its own run after the registration could
// not be removed: GitHub may have assigned every other one before the release.
func (w *Watcher) checkRefused(h *world.Host, j *world.Job) {
	its := w.of(h.ID).runOf(h.Observed.Listener.Assignment) == lifecycle.RunKey(j.Repository, j.RunID)
	if h.Observed.Allowed.Standby && !w.agentKnew(h, j) {
		return // its agent did not read the claim in time
	}
	failed := h.Observed.Removed.Phase == agent.PhaseFailed && !h.Observed.Removed.Assigned
	if its && !failed && !h.Hostile && !w.of(h.ID).wasReplaced() {
		w.Broken(RuleRefused, "%s is refused on %s, which is registered for its run", j, h.ID)
	}
}

// checkRegister checks that a host that is not clean does not register for another run.
func (w *Watcher) checkRegister(h *world.Host, a agent.Assignment) {
	key, l := lifecycle.RunKey(a.Repository, a.RunID), w.of(h.ID)
	forgot := l.forgot(a.Number) // as on a new root volume, by a record of before it
	l.registeredFor[a.Number], l.registeredAt[a.Number] = key, w.Now
	if h.LastRun != "" && h.LastRun != key {
		w.Broken(RuleDirtyHost, "%s registers for %s and was not cleaned since %s", h.ID, key, h.LastRun)
	}
	if forgot {
		delete(w.listened, a.RunnerName)
	}
	if w.listened[a.RunnerName] {
		w.Broken(RuleRegisteredTwice, "%s registers as %s, and has listened by that name", h.ID, a.RunnerName)
	}
}

func (w *Watcher) checkClean(h *world.Host) {
	if h.Worker != nil {
		w.Broken(RuleCleanBusy, "%s is cleaned while %s runs", h.ID, h.Worker)
	}
}

// tellsWithin is how long after an agent has read a claim its hook has it, when something fails at first.
const tellsWithin = 3 * time.Second

// agentKnew reports whether the agent of a host in standby had read the claim of the job's run early enough for its hook.
func (w *Watcher) agentKnew(h *world.Host, j *world.Job) bool {
	return h.ReadRun == j.RunID && h.ReadAt.Add(tellsWithin).Before(w.Now) && h.Agent.Alive && !h.Actor.Suspended()
}

package rules

import (
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
	case p.Assignment < l.reportedFor:
		w.Broken(RuleFalseSignal, "%s reports for assignment %d after it did for %d", h.ID, p.Assignment, l.reportedFor)
	case p.Assignment > r.Assignment:
		w.Broken(RuleFalseSignal, "%s reports for assignment %d, its record has %d", h.ID, p.Assignment, r.Assignment)
	case p.Signal == lifecycle.SignalRegOK && !h.Registered[p.Assignment]:
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
	switch {
	case l.runOf(assignment) != key:
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
	failed := h.Observed.Removed.Phase == agent.PhaseFailed && !h.Observed.Removed.Assigned
	if its && !failed && !h.Hostile {
		w.Broken(RuleRefused, "%s is refused on %s, which is registered for its run", j, h.ID)
	}
}

// checkRegister checks that a host that is not clean does not register for another run.
func (w *Watcher) checkRegister(h *world.Host, a agent.Assignment) {
	if key := lifecycle.RunKey(a.Repository, a.RunID); h.LastRun != "" && h.LastRun != key {
		w.Broken(RuleDirtyHost, "%s registers for %s and was not cleaned since %s", h.ID, key, h.LastRun)
	}
}

func (w *Watcher) checkClean(h *world.Host) {
	if h.Worker != nil {
		w.Broken(RuleCleanBusy, "%s is cleaned while %s runs", h.ID, h.Worker)
	}
}

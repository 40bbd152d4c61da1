package policy

import "github.com/remuda-ci/remuda/internal/lifecycle"

// DecideOrphan is the first phase of a scale-down: the last chance of a host that an earlier sweep did not
// find on GitHub. asked answers for its RunnerID, if it has one, and byName are the listed registrations with
// its name, as in ByHost. A host whose mark is taken away is not judged again in the same sweep.
func (ScaleDown) DecideOrphan(c Candidate, asked RunnerLookup, byName []Runner) HostVerdict {
	action, why := orphan(c, asked, byName)
	return HostVerdict{InstanceID: c.InstanceID, Action: action, Code: why.Code, Reason: why.Text}
}

func orphan(c Candidate, asked RunnerLookup, byName []Runner) (lifecycle.Action, lifecycle.Reason) {
	r := asked.Runner
	switch {
	case c.Bypass:
		return lifecycle.ActionKeep, bypassed
	case c.RunnerID != 0 && !asked.Known:
		return lifecycle.ActionKeep, orphanNotAsked(c.RunnerID)
	case c.RunnerID != 0 && r != nil && !(r.offline() && r.Busy):
		return lifecycle.ActionUnmarkOrphan, noOrphan(c.RunnerID, *r)
	case c.agentBusy():
		return lifecycle.ActionKeep, orphanAtWork
	}
	for _, other := range byName {
		if !other.offline() && other.Busy {
			return lifecycle.ActionKeep, orphanListedBusy(other)
		}
	}
	return lifecycle.ActionTerminate, orphaned(c.RunnerID, r)
}

// condition is how the runner is, in words.
func (r Runner) condition() string {
	status := statusOnline
	if r.offline() {
		status = statusOffline
	}
	if r.Busy {
		return status + " and busy"
	}
	return status + " and not busy"
}

package policy

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// whyBypass names the tag by which an operator keeps scale-down from a machine.
const whyBypass = "hold: it is tagged remuda:bypass-removal=true"

// DecideOrphan is the first phase of a scale-down: the last chance of a host that an
// earlier sweep did not find on GitHub. asked answers for its RunnerID, if it
// has one, and byName are the listed registrations with its name, as in ByHost.
// A host whose mark is taken away is not judged again in the same sweep.
func (ScaleDown) DecideOrphan(c Candidate, asked RunnerLookup, byName []Runner) HostVerdict {
	v := HostVerdict{InstanceID: c.InstanceID}
	v.Action, v.Reason = orphan(c, asked, byName)
	return v
}

func orphan(c Candidate, asked RunnerLookup, byName []Runner) (lifecycle.Action, string) {
	r := asked.Runner
	switch {
	case c.Bypass:
		return lifecycle.ActionKeep, whyBypass
	case c.RunnerID != 0 && !asked.Known:
		return lifecycle.ActionKeep, fmt.Sprintf("an orphan, and GitHub could not be asked for its runner %d: the next sweep asks again", c.RunnerID)
	case c.RunnerID != 0 && r != nil && !(r.offline() && r.Busy):
		return lifecycle.ActionUnmarkOrphan, fmt.Sprintf("no orphan: GitHub, asked for runner %d, has it %s", c.RunnerID, r.condition())
	case c.agentBusy():
		return lifecycle.ActionKeep, "an orphan for GitHub, but its agent says that it runs a job"
	}
	for _, other := range byName {
		if !other.offline() && other.Busy {
			return lifecycle.ActionKeep, fmt.Sprintf("an orphan, but GitHub lists its name with runner %d, %s", other.ID, other.condition())
		}
	}
	switch {
	case c.RunnerID == 0:
		return lifecycle.ActionTerminate, "an orphan that has no runner id"
	case r == nil:
		return lifecycle.ActionTerminate, fmt.Sprintf("an orphan: GitHub, asked for runner %d, does not know it", c.RunnerID)
	}
	return lifecycle.ActionTerminate, fmt.Sprintf("an orphan: GitHub, asked for runner %d, has it %s", c.RunnerID, r.condition())
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

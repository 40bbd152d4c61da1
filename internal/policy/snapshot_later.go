package policy

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Later is the snapshot at a later time if nothing changes until then: no job begins or ends, no host comes or goes, and agents and runners
// stay as they are. Sweeps in between have seen by then which hosts are idle, so that their confirmation is over if it can be.
func (s Snapshot) Later(at time.Time) Snapshot {
	if !at.After(s.Now) {
		return s
	}
	first := at.Add(-s.Policy.IdleConfirmation)
	if s.Policy.IdleConfirmation <= 0 || !first.After(s.Now) {
		return s.moved(at)
	}
	seen, idle := s.moved(first), map[string]bool{}
	for _, v := range seen.Plan() {
		idle[v.InstanceID] = v.Action == lifecycle.ActionMarkIdle
	}
	for i, host := range seen.Instances {
		if idle[host.InstanceID] {
			seen.Instances[i].IdleDetectedAt, seen.Instances[i].UnreadableIdle = first, false
		}
	}
	return seen.moved(at)
}

// moved is the snapshot with another time. What agents said is as old then as it is now, since they go on saying it.
func (s Snapshot) moved(to time.Time) Snapshot {
	by := to.Sub(s.Now)
	s.Now, s.Instances = to, slices.Clone(s.Instances)
	for i := range s.Instances {
		if seen := &s.Instances[i].AgentSeenAt; !seen.IsZero() {
			*seen = seen.Add(by)
		}
	}
	return s
}

package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// ActivePeriod is the first of the periods of the policy that holds; where none does no host
// is kept idle. It is the same for all owners, and takes as long as there are periods.
func (p ScaleDown) ActivePeriod(now time.Time) Period {
	if period, ok := Now(p.Idle, now); ok {
		return period
	}
	return Period{Eviction: EvictOldest}
}

// DecideOwner is the second phase of a scale-down, for all hosts of one owner and all registrations on its
// list, which must be complete: who is missing from it is taken for missing. Orphans have no part in it. The
// verdicts are in the order in which hosts are given their place among those that are kept idle: those that
// the period evicts last come first, and those as old by instance id. The period is what Kept says.
func (p ScaleDown) DecideOwner(hosts []Candidate, listed []Runner, period Period, now time.Time) []HostVerdict {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(c Candidate) bool { return c.Orphan })
	slices.SortStableFunc(hosts, period.Eviction.compare)
	found := ByHost(hosts, listed)
	s := ownerSweep{ScaleDown: p, now: now, quota: period.IdleCount}
	verdicts := make([]HostVerdict, 0, len(hosts))
	for _, c := range hosts {
		verdicts = append(verdicts, s.judge(c, found[c.InstanceID]))
	}
	return verdicts
}

// compare orders hosts: those that go last come first. One without a launch time is as young as can be.
func (e Eviction) compare(a, b Candidate) int {
	byAge := b.LaunchedAt.Compare(a.LaunchedAt)
	if a.LaunchedAt.IsZero() != b.LaunchedAt.IsZero() {
		byAge = -byAge // the zero time is the earliest, and means the latest
	}
	if e == EvictNewest {
		byAge = -byAge
	}
	return cmp.Or(byAge, strings.Compare(a.InstanceID, b.InstanceID))
}

// ByHost are the registrations of each host, by its instance id, with which the names of its runners end.
func ByHost(hosts []Candidate, listed []Runner) map[string][]Runner {
	ids, lengths := map[string]bool{}, map[int]bool{}
	for _, c := range hosts {
		ids[c.InstanceID], lengths[len(c.InstanceID)] = true, true
	}
	found := map[string][]Runner{}
	for _, r := range listed {
		for n := range lengths { // one or two: ids of EC2 are of two lengths
			if n > len(r.Name) {
				continue
			}
			if id := r.Name[len(r.Name)-n:]; ids[id] {
				found[id] = append(found[id], r)
			}
		}
	}
	return found
}

// ownerSweep is the second phase on its way through the hosts of one owner.
type ownerSweep struct {
	ScaleDown
	now time.Time
	// quota is how many hosts may stay idle, kept how many do.
	quota, kept int
}

func (s *ownerSweep) judge(c Candidate, runners []Runner) HostVerdict {
	action, why := lifecycle.ActionKeep, lifecycle.Reason{}
	busy, whoSays := saysBusy(c, runners)
	switch {
	case c.Bypass:
		why = bypassed
	case c.Owner == "":
		why = noOwner
	case c.Scope == "":
		why = noScope
	case len(runners) == 0:
		action, why = s.missing(c)
	case busy:
		action, why = s.busy(c, runners, whoSays)
	case s.young(c):
		why = s.isYoung(c)
	case !slices.ContainsFunc(runners, Runner.online) && !s.reached(c.LaunchedAt, s.bootTime(c)):
		why = s.booting(c, "it is registered and not online")
	case s.kept < s.quota:
		s.kept++
		why = s.keptIdle()
	default:
		action, why = s.idle(c)
	}
	v := HostVerdict{InstanceID: c.InstanceID, Action: action, Code: why.Code, Reason: why.Text}
	if v.Action == ActionDeregisterAndTerminate {
		for _, r := range runners {
			v.RunnerIDs = append(v.RunnerIDs, r.ID)
		}
	}
	return v
}

// saysBusy reports whether its agent or GitHub says that the host runs a job, and which of them.
func saysBusy(c Candidate, runners []Runner) (bool, lifecycle.Reason) {
	if c.agentBusy() {
		return true, agentBusy
	}
	for _, r := range runners {
		if r.Busy {
			return true, runnerBusy(r)
		}
	}
	return false, lifecycle.Reason{}
}

// missing judges a host without a registration.
func (s *ownerSweep) missing(c Candidate) (lifecycle.Action, lifecycle.Reason) {
	if s.reached(c.LaunchedAt, s.bootTime(c)) {
		return lifecycle.ActionMarkOrphan, s.notListed(c)
	}
	return lifecycle.ActionKeep, s.booting(c, "GitHub does not list it yet")
}

// busy decides for a host that its agent or GitHub says is busy. If it was read as
// idle before, the confirmation of that starts over.
func (s *ownerSweep) busy(c Candidate, runners []Runner, who lifecycle.Reason) (lifecycle.Action, lifecycle.Reason) {
	switch {
	case !s.young(c) && s.lost(c, runners):
		return lifecycle.ActionMarkOrphan, s.runnerOffline(c)
	case s.IdleConfirmation > 0 && c.marked():
		return lifecycle.ActionUnmarkIdle, busyAgain(who)
	}
	return lifecycle.ActionKeep, who
}

// lost reports whether a busy host is one whose machine no longer runs its
// runner: none of its registrations is online, those with a job have been offline for
// the boot time, and its agent has not reported for as long.
func (s *ownerSweep) lost(c Candidate, runners []Runner) bool {
	boot := s.bootTime(c)
	if !c.AgentSeenAt.IsZero() && !s.reached(c.AgentSeenAt, boot) {
		return false
	}
	jobs := 0
	for _, r := range runners {
		switch {
		case r.online(), r.Busy && !s.reached(r.OfflineSince, boot):
			return false
		case r.Busy:
			jobs++
		}
	}
	return jobs > 0
}

// idle judges a host that is idle and for which no place is left.
func (s *ownerSweep) idle(c Candidate) (lifecycle.Action, lifecycle.Reason) {
	switch {
	case s.IdleConfirmation <= 0:
		return ActionDeregisterAndTerminate, s.noPlace()
	case c.UnreadableIdle:
		return lifecycle.ActionMarkIdle, idleUnreadable
	case c.IdleDetectedAt.IsZero():
		return lifecycle.ActionMarkIdle, s.idleFirstSeen()
	case !s.reached(c.IdleDetectedAt, s.IdleConfirmation):
		return lifecycle.ActionKeep, s.idleUnconfirmed(c)
	}
	return ActionDeregisterAndTerminate, s.idleConfirmed(c)
}

func (r Runner) online() bool { return !r.offline() }

func (s *ownerSweep) bootTime(c Candidate) time.Duration {
	return s.BootTime.of(c.OS, DefaultBootTime())
}

func (s *ownerSweep) young(c Candidate) bool { return !s.reached(c.LaunchedAt, s.minimumRunning(c)) }

// reached reports whether so long has passed since t: what is reached exactly
// is reached, and an unknown time never is.
func (s *ownerSweep) reached(t time.Time, d time.Duration) bool {
	return !t.IsZero() && !s.now.Before(t.Add(d))
}

// since is the time since t in whole seconds. It is rounded down, so that no sentence says that a limit is
// reached before it is. By another clock t may lie ahead: then it is 0.
func (s *ownerSweep) since(t time.Time) time.Duration {
	return max(0, s.now.Sub(t)).Truncate(time.Second)
}

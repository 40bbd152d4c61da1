package policy

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// This file has the sentences of scale-down, warm pools, job pools and services, each with its code.

var because = lifecycle.Because

// The reasons of scale-down.
var (
	bypassed       = because(lifecycle.ReasonBypassed, "hold: it is tagged remuda:bypass-removal=true")
	noOwner        = because(lifecycle.ReasonNoOwner, "left alone: it has no owner on whose list it could be")
	noScope        = because(lifecycle.ReasonNoScope, "left alone: it has no scope, so it is not known on which list it should be")
	agentBusy      = because(lifecycle.ReasonAgentBusy, "its agent says that it runs a job")
	orphanAtWork   = because(lifecycle.ReasonAgentBusy, "an orphan for GitHub, but its agent says that it runs a job")
	idleUnreadable = because(lifecycle.ReasonIdleUnreadable, "idle, but the mark of its first idle reading cannot be read: it starts over")
)

func orphanNotAsked(id int64) lifecycle.Reason {
	return because(lifecycle.ReasonGitHubUnavailable, "an orphan, and GitHub could not be asked for its runner %d: the next sweep asks again", id)
}

func noOrphan(id int64, r Runner) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerFound, "no orphan: GitHub, asked for runner %d, has it %s", id, r.condition())
}

func orphanListedBusy(r Runner) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerBusy, "an orphan, but GitHub lists its name with runner %d, %s", r.ID, r.condition())
}

// orphaned is why an orphan ends: r is what GitHub answered about the runner id.
func orphaned(id int64, r *Runner) lifecycle.Reason {
	switch {
	case id == 0:
		return because(lifecycle.ReasonOrphan, "an orphan that has no runner id")
	case r == nil:
		return because(lifecycle.ReasonOrphan, "an orphan: GitHub, asked for runner %d, does not know it", id)
	}
	return because(lifecycle.ReasonOrphan, "an orphan: GitHub, asked for runner %d, has it %s", id, r.condition())
}

func runnerBusy(r Runner) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerBusy, "GitHub says that runner %d is %s", r.ID, r.condition())
}

func busyAgain(who lifecycle.Reason) lifecycle.Reason {
	return because(lifecycle.ReasonBusyAgain, "%s: it was read as idle before, which starts over", who.Text)
}

func (s *ownerSweep) isYoung(c Candidate) lifecycle.Reason {
	return because(lifecycle.ReasonYoung, "young: %s", s.had(c, "the minimum running time", s.minimumRunning(c)))
}

func (s *ownerSweep) booting(c Candidate, what string) lifecycle.Reason {
	return because(lifecycle.ReasonBooting, "still booting: %s; %s", what, s.had(c, "the boot time", s.bootTime(c)))
}

func (s *ownerSweep) notListed(c Candidate) lifecycle.Reason {
	return because(lifecycle.ReasonNotListed, "GitHub does not list it: %s", s.had(c, "the boot time", s.bootTime(c)))
}

func (s *ownerSweep) runnerOffline(c Candidate) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerOffline,
		"GitHub has had it offline and busy for the boot time of %s, in which its agent was not seen", s.bootTime(c))
}

func (s *ownerSweep) keptIdle() lifecycle.Reason {
	return because(lifecycle.ReasonKeptIdle, "kept idle, as %d of %d for its owner", s.kept, s.quota)
}

func (s *ownerSweep) noPlace() lifecycle.Reason {
	return because(lifecycle.ReasonIdle, "idle, beyond the %d that are kept so for its owner", s.quota)
}

func (s *ownerSweep) idleConfirmed(c Candidate) lifecycle.Reason {
	return s.noPlace().And(fmt.Sprintf("; first read so %s ago", s.since(c.IdleDetectedAt)))
}

func (s *ownerSweep) idleFirstSeen() lifecycle.Reason {
	return because(lifecycle.ReasonIdleFirstSeen, "idle for the first time: it goes if it still is in %s", s.IdleConfirmation)
}

func (s *ownerSweep) idleUnconfirmed(c Candidate) lifecycle.Reason {
	return because(lifecycle.ReasonIdleUnconfirmed, "idle for %s of the %s after which it goes", s.since(c.IdleDetectedAt), s.IdleConfirmation)
}

// clockSkew is how far the clocks of two machines may be apart without a word: those
// of EC2 and of ours are kept to far less.
const clockSkew = time.Minute

// had is the time that a host has had, beside a limit, in words. It may have been
// launched long before it got its assignment: see Candidate.
func (s *ownerSweep) had(c Candidate, limit string, d time.Duration) string {
	if c.LaunchedAt.IsZero() {
		return "when it was launched is not known"
	}
	if ahead := c.LaunchedAt.Sub(s.now); ahead > clockSkew {
		return fmt.Sprintf("its launch is %s ahead of now", ahead.Truncate(time.Second))
	}
	return fmt.Sprintf("it has had %s, and %s is %s", s.since(c.LaunchedAt), limit, d)
}

// The reasons of job pools.
var hostOver = because(lifecycle.ReasonHostOver, "its host is over")

func jobWaiting(j lifecycle.Job) lifecycle.Reason {
	return because(lifecycle.ReasonJobWaiting, "job %d waits and no host of %s is free", j.ID, j.Scope)
}

func poolMinimum(n, minimum int) lifecycle.Reason {
	return because(lifecycle.ReasonPoolMinimum, "%d of at least %s for a job", n, plural.Of(minimum, "host waits", "hosts wait"))
}

func unclaimed(d time.Duration) lifecycle.Reason {
	return because(lifecycle.ReasonUnclaimed, "no job has needed its host for %s", d)
}

func renewed(d time.Duration) lifecycle.Reason {
	return because(lifecycle.ReasonUnclaimed, "its host has been registered for %s without a job, and GitHub removes such runners after minutes: another is registered", d)
}

// counted begins the reason of a warm pool with what was counted.
func (d *WarmDecision) counted(of string) {
	d.because(lifecycle.ReasonWarmEnough, "%d wanted (%s), %d idle and %d coming", d.Wanted, of, d.Idle, d.Coming)
	if d.Kept > 0 {
		d.because(lifecycle.ReasonWarmEnough, ", %d kept beyond their time", d.Kept)
	}
}

// because continues the sentence. The code is that of its last part.
func (d *WarmDecision) because(code lifecycle.ReasonCode, format string, values ...any) {
	d.Code, d.Reason = code, d.Reason+fmt.Sprintf(format, values...)
}

// The reasons of services.
var (
	queuedUnknown = because(lifecycle.ReasonBacklogUnknown, "it is not known what waits")
	busyUnknown   = because(lifecycle.ReasonBacklogUnknown, "nothing waits, and it is not known what is worked on")
	serviceEmpty  = because(lifecycle.ReasonServiceEmpty, "nothing waits, and there are no runners")
)

func jobsRunning(n int) lifecycle.Reason {
	return because(lifecycle.ReasonJobsRunning, "%s worked on", plural.Of(n, "job is", "jobs are"))
}

// jobsWaiting is why a service for which something waits is to have so many runners.
func (p ServicePolicy) jobsWaiting(f ServiceFacts, wanted int) lifecycle.Reason {
	queued, runners := *f.Queued, plural.Of(f.Desired, "runner", "runners")
	wait := plural.Of(queued, "job waits", "jobs wait")
	if f.More {
		wait = fmt.Sprintf("%d or more jobs wait", queued) // a full page of the table: never one
	}
	switch {
	case f.Busy == nil && f.Desired > 0:
		return because(lifecycle.ReasonBacklogUnknown, "%s, and it is not known what is worked on", wait)
	case f.Busy == nil:
		return because(lifecycle.ReasonJobsWaiting, "%s and there are no runners; it is not known what is worked on", wait)
	case wanted > f.Desired && f.Desired == 0:
		return because(lifecycle.ReasonJobsWaiting, "%s and there are no runners", wait)
	case wanted > f.Desired:
		return because(lifecycle.ReasonJobsWaiting, "%s for %s, more than %d for each", wait, runners, p.BacklogPerRunner)
	case f.Desired >= p.Maximum && queued > f.Desired*p.BacklogPerRunner:
		return because(lifecycle.ReasonServiceFull, "%s, and there are %s, the most there may be", wait, runners)
	}
	return because(lifecycle.ReasonJobsWaiting, "%s for %s, within %d for each", wait, runners, p.BacklogPerRunner)
}

// serviceIdle is why a service without work is kept or ends: at says at which of its checks.
func serviceIdle(at string, checks ...any) lifecycle.Reason {
	return because(lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at "+at, checks...)
}

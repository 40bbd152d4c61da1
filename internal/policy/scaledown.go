package policy

import (
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// ActionDeregisterAndTerminate ends a host that GitHub knows: its registrations are
// deleted first, and the host stays if GitHub has given it a job in between. For the
// host's record it is a termination with lifecycle.Decision.Deregister set.
const ActionDeregisterAndTerminate lifecycle.Action = "deregister_and_terminate"

// ByOS is a duration by the operating system of a host, in small letters.
type ByOS map[string]time.Duration

// linux is what a host of an operating system without a duration of its own is taken for.
const linux = "linux"

// operatingSystems are those that runners run on.
var operatingSystems = []string{linux, "windows", "macos"}

// DefaultMinimumRunning is how long a host is left alone after its launch: long
// enough for GitHub to give it the job for which it was launched.
func DefaultMinimumRunning() ByOS {
	return ByOS{linux: 5 * time.Minute, "windows": 15 * time.Minute}
}

// DefaultBootTime is how long a host may take from its launch until it is online on GitHub.
func DefaultBootTime() ByOS {
	return ByOS{linux: 5 * time.Minute, "windows": 20 * time.Minute}
}

// of is the duration for an operating system: what was given for it, else its default, else that of Linux.
func (b ByOS) of(os string, defaults ByOS) time.Duration {
	for _, name := range []string{strings.ToLower(os), linux} {
		for _, by := range []ByOS{b, defaults} {
			if d, ok := by[name]; ok {
				return d
			}
		}
	}
	return 0
}

// ScaleDown is when idle hosts go. The zero value is the default of everything:
// no host is kept idle, and one idle reading is enough.
type ScaleDown struct {
	// MinimumRunning and BootTime have defaults for what they do not name.
	MinimumRunning, BootTime ByOS
	// IdleConfirmation is how long a host must have been idle, from the first
	// idle reading on, before it goes. Zero: the first is enough.
	IdleConfirmation time.Duration
	// Idle are the periods in which hosts are kept idle. The first that holds
	// counts, for each owner by itself.
	Idle []Period
}

func (p ScaleDown) minimumRunning(c Candidate) time.Duration {
	return p.MinimumRunning.of(c.OS, DefaultMinimumRunning())
}

// YoungUntil is when a host has had the minimum running time, in which it stays whether it is idle or not.
func (p ScaleDown) YoungUntil(c Candidate) time.Time { return c.LaunchedAt.Add(p.minimumRunning(c)) }

// Runner is a registration as GitHub describes it.
type Runner struct {
	ID    int64
	Name  string
	Owner string // of its host, as in Candidate
	// Status is "online" or "offline", as GitHub has it.
	Status string
	Busy   bool
	// OfflineSince is since when it is offline; zero: not known.
	OfflineSince time.Time
}

// The statuses of a runner.
const (
	statusOnline  = "online"
	statusOffline = "offline"
)

var runnerStatuses = []string{statusOnline, statusOffline}

func (r Runner) offline() bool { return r.Status == statusOffline }

// Candidate is a host as scale-down sees it. A zero field is not known.
type Candidate struct {
	InstanceID string
	// LaunchedAt is from when on the time counts that it has to boot, and in which
	// it is young: its launch, or for a host that was used before its assignment.
	LaunchedAt time.Time
	// Owner is the organization or repository on whose list the host should be,
	// Scope says which of the two it is.
	Owner, Scope string
	// OS is "linux", "windows" or "macos", in letters of either case.
	OS string
	// Orphan is set when an earlier sweep did not find it on GitHub.
	Orphan bool
	// RunnerID is GitHub's id of its registration.
	RunnerID int64
	// Bypass is set when an operator tagged it so that scale-down leaves it alone.
	Bypass bool
	// IdleDetectedAt is when it was first read as idle. UnreadableIdle: there is
	// a mark that says so, but not when.
	IdleDetectedAt time.Time
	UnreadableIdle bool
	// AgentBusy is what the agent last said, AgentSeenAt when.
	AgentBusy   *bool
	AgentSeenAt time.Time
}

// agentBusy: the agent is the authority on busy, and GitHub is not: its own
// flag lags, and runners drop out of its lists (docs/design.md#github-and-ec2-facts).
func (c Candidate) agentBusy() bool { return c.AgentBusy != nil && *c.AgentBusy }

// marked reports whether an earlier sweep read it as idle.
func (c Candidate) marked() bool { return c.UnreadableIdle || !c.IdleDetectedAt.IsZero() }

// RunnerLookup is GitHub's answer to the question for one registration by its id.
type RunnerLookup struct {
	// Known is false when GitHub could not be asked.
	Known bool
	// Runner is nil when GitHub has none with the id.
	Runner *Runner
}

// HostVerdict is what scale-down does with a host, and why.
type HostVerdict struct {
	InstanceID string
	Action     lifecycle.Action
	// Code is why, and Reason says it in a sentence for people.
	Code   lifecycle.ReasonCode
	Reason string
	// RunnerIDs are the registrations to delete before the host is ended, all that its name has.
	RunnerIDs []int64
}

// Why is the verdict's code and sentence.
func (v HostVerdict) Why() lifecycle.Reason { return lifecycle.Reason{Code: v.Code, Text: v.Reason} }

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

package scaledown

import (
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// This file has the sentences that this room adds to those of the policy, each with its code.

var because = lifecycle.Because

var (
	changedSince   = because(lifecycle.ReasonConflict, "the record changed in the meantime: the next sweep decides again")
	atWork         = because(lifecycle.ReasonAgentBusy, "not to be ended: its agent says that it runs a job")
	unregistered   = because(lifecycle.ReasonEndInterrupted, "its registration was deleted by a scale-down that was cut short")
	endInterrupted = because(lifecycle.ReasonEndInterrupted, "its end was begun by a scale-down that was cut short: the next one goes on with it")
	notKnownGone   = because(lifecycle.ReasonGitHubUnavailable, "its end was cut short, and GitHub does not answer whether its registration is gone")
)

func failed(err error) lifecycle.Reason {
	return because(lifecycle.ReasonFailed, "its step failed, and the next sweep tries again: %s", op.OneLine(err))
}

func notListed(owner string) lifecycle.Reason {
	return because(lifecycle.ReasonGitHubUnavailable, "GitHub does not answer about the runners of %s", owner)
}

func orphanNotAsked(id int64, err error) lifecycle.Reason {
	return because(lifecycle.ReasonGitHubUnavailable, "an orphan, and GitHub could not be asked for its runner %d: %v", id, err)
}

func notAnswered(id int64) lifecycle.Reason {
	return because(lifecycle.ReasonGitHubUnavailable, "idle, but GitHub does not answer to delete its runner %d: the next sweep tries again", id)
}

func notDeleted(id int64) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerNotWithdrawn, "idle, but GitHub refuses to delete its runner %d: the next sweep tries again", id)
}

func gotJob(id int64) lifecycle.Reason {
	return because(lifecycle.ReasonRunnerBusy, "not idle any more: GitHub has given runner %d a job", id)
}

func deleted(id int64, v policy.HostVerdict) lifecycle.Reason {
	return because(v.Code, "runner %d was deleted: %s", id, v.Reason)
}

func poolMinimum(n int) lifecycle.Reason {
	return because(lifecycle.ReasonPoolMinimum, "idle, as its job pool wants it: %d hosts or more wait for a job there", n)
}

func requestOpen(q lifecycle.Request) lifecycle.Reason {
	return because(lifecycle.ReasonRequestOpen, "idle, but its request %s does not have all its hosts yet", q.RequestID)
}

func requestAwaits(q lifecycle.Request, r lifecycle.Record) lifecycle.Reason {
	return because(lifecycle.ReasonRequestOpen, "starting: GitHub does not list it yet, and its request %s waits for it until %s", q.RequestID, hosts.ClockTime(r.Threshold))
}

func jobWaits(j lifecycle.Job) lifecycle.Reason {
	return because(lifecycle.ReasonJobWaiting, "idle, but job %d of its run waits for a host", j.ID)
}

// underHold is what becomes of a verdict while the fleet is held.
func underHold(hold lifecycle.FleetHold, v policy.HostVerdict) lifecycle.Reason {
	done := "ended"
	if v.Action == lifecycle.ActionMarkIdle || v.Action == lifecycle.ActionMarkOrphan {
		done = "marked"
	}
	return lifecycle.Because(lifecycle.ReasonFleetHeld, "%s; else it would be %s: %s", hold, done, v.Reason)
}

package scaledown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// list reads a page of the registrations of the next owner. What is judged by them must have them all.
func (s *Sweep) list(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.owners) == 0 {
		return op.Done, nil
	}
	o := s.owners[0]
	if o.name == "" { // there is no owner to ask
		o.sort()
		return s.Then(s.host)
	}
	got, err := s.env.GitHub.Runners(ctx, o.repository, o.page)
	if err != nil {
		return s.leave(ctx, "list runners", err)
	}
	for _, r := range got.Items {
		o.listed = append(o.listed, o.runner(r))
	}
	if o.page.After = got.Next; got.Next == "" {
		o.sort()
		s.Next = s.host
	}
	return op.Again, nil
}

// runner is a registration in the words of the policy. GitHub does not tell since when one is offline.
func (o *ownerHosts) runner(r lifecycle.Runner) policy.Runner {
	status := "offline"
	if r.Online {
		status = "online"
	}
	return policy.Runner{ID: r.ID, Name: r.Name, Owner: o.name, Status: status, Busy: r.Busy}
}

// sort sets those hosts apart that are asked for one by one. It notes the ids of
// the registrations that the records name.
func (o *ownerHosts) sort() {
	ids := make(map[string]int64, len(o.listed))
	for _, r := range o.listed {
		ids[r.Name] = r.ID
	}
	var rest []scaleDownHost
	o.found = policy.ByHost(candidates(o.hosts), o.listed)
	for _, h := range o.hosts {
		if id := ids[h.record.RunnerName]; id != 0 {
			h.seen.RunnerID = id
		}
		switch {
		case h.seen.Orphan:
			o.orphans = append(o.orphans, h)
		case h.record.ScalingDown() && !h.seen.Bypass && len(o.found[h.record.InstanceID]) == 0:
			o.cut = append(o.cut, h)
		default:
			rest = append(rest, h)
		}
	}
	o.hosts = rest
}

func candidates(hosts []scaleDownHost) []policy.Candidate {
	list := make([]policy.Candidate, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, h.seen)
	}
	return list
}

// leave leaves the rest of an owner's hosts to the next sweep, since GitHub does
// not answer about them. The other owners have their turn.
func (s *Sweep) leave(ctx context.Context, what string, err error) (op.Progress, error) {
	if ctx.Err() != nil {
		return op.Again, fmt.Errorf("%s: %w", what, err)
	}
	o := s.owners[0]
	left := append(append(append([]scaleDownHost{}, o.orphans...), o.cut...), o.hosts...)
	for _, h := range o.judged {
		left = append(left, h.scaleDownHost)
	}
	s.env.Log.Warn("the hosts of an owner are left to the next sweep", logkey.Owner, o.name, logkey.Hosts, len(left), logkey.Call, what, logkey.Error, err)
	for _, h := range left {
		s.Events.RecordDecision(h.record, notListed(o.name).Decision(lifecycle.ActionKeep))
	}
	return s.nextOwner(ctx)
}

func (s *Sweep) nextOwner(ctx context.Context) (op.Progress, error) {
	s.Events.Flush(ctx)
	s.owners, s.Next, s.unanswered = s.owners[1:], s.list, 0
	return op.Again, nil
}

// host carries out what was decided about the next host of the owner, and once
// that is done for all decides about others: the orphans first.
func (s *Sweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	o := s.owners[0]
	switch {
	case len(o.judged) > 0:
		return s.carries(s.carryOut)(ctx, now)
	case len(o.orphans) > 0:
		return s.lastChance(ctx, o.orphans[0])
	case len(o.cut) > 0:
		return s.resume(ctx, o.cut[0])
	case o.all:
		return s.nextOwner(ctx)
	}
	o.judge(s.env.Options.Policy, s.kept, now)
	return op.Again, nil
}

// lastChance asks for an orphan by its id, and judges it.
func (s *Sweep) lastChance(ctx context.Context, h scaleDownHost) (op.Progress, error) {
	o := s.owners[0]
	var asked policy.RunnerLookup
	if h.seen.RunnerID != 0 && !h.seen.Bypass {
		runner, err := s.env.Options.GitHub.Runner(ctx, h.record.Repository, h.seen.RunnerID)
		switch {
		case err == nil:
			r := o.runner(runner)
			asked, s.unanswered = policy.RunnerLookup{Known: true, Runner: &r}, 0
		case errors.Is(err, lifecycle.ErrNotFound):
			asked.Known, s.unanswered = true, 0
		default:
			if s.unanswered++; s.unanswered >= op.UnavailableAtMost || ctx.Err() != nil {
				return s.leave(ctx, fmt.Sprintf("find runner %d", h.seen.RunnerID), err)
			}
			s.env.Log.Warn("an orphan could not be asked for", logkey.Instance, h.record.InstanceID, logkey.Runner, h.seen.RunnerID, logkey.Error, err)
		}
	}
	named := o.found[h.record.InstanceID]
	v := s.env.Options.Policy.DecideOrphan(h.seen, asked, named)
	o.orphans, o.judged = o.orphans[1:], append(o.judged, judged{h, v, asked.Runner == nil && len(named) == 0})
	return op.Again, nil
}

// resume looks after a host whose end was cut short and that GitHub does not list. When its registration is
// gone, as it should be by then, the rest of its end follows. Else it is judged like others.
func (s *Sweep) resume(ctx context.Context, h scaleDownHost) (op.Progress, error) {
	o, id := s.owners[0], h.record.InstanceID
	runner, err := s.env.GitHub.FindRunner(ctx, h.record.Repository, h.record.RunnerName)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		s.unanswered = 0
		o.judged = append(o.judged, judged{h, policy.HostVerdict{
			InstanceID: id, Action: policy.ActionDeregisterAndTerminate, Code: unregistered.Code, Reason: unregistered.Text,
		}, true})
	case err != nil:
		if s.unanswered++; s.unanswered >= op.UnavailableAtMost || ctx.Err() != nil {
			return s.leave(ctx, "find runner "+h.record.RunnerName, err)
		}
		s.env.Log.Warn("GitHub does not answer; the next sweep goes on with the host", logkey.Instance, id, logkey.Runner, h.record.RunnerName, logkey.Error, err)
		s.Events.RecordDecision(h.record, notKnownGone.Decision(lifecycle.ActionKeep))
	default:
		s.unanswered = 0
		o.listed, o.hosts = append(o.listed, o.runner(runner)), append(o.hosts, h)
	}
	o.cut = o.cut[1:]
	return op.Again, nil
}

// judge decides about all hosts that were not asked for one by one.
func (o *ownerHosts) judge(p policy.ScaleDown, kept policy.Period, now time.Time) {
	byID := make(map[string]scaleDownHost, len(o.hosts))
	for _, h := range o.hosts {
		byID[h.record.InstanceID] = h
	}
	for _, v := range p.DecideOwner(candidates(o.hosts), o.listed, kept, now) {
		o.judged = append(o.judged, judged{byID[v.InstanceID], v, false})
	}
	o.hosts, o.all = nil, true
}

// This file has the sentences that this room adds to those of the policy, each with its code.

var because = lifecycle.Because

var (
	changedSince   = because(lifecycle.ReasonConflict, "the record changed in the meantime: the next sweep decides again")
	atWork         = because(lifecycle.ReasonAgentBusy, "not to be ended: its agent says that it runs a job")
	notHeard       = because(lifecycle.ReasonNotHeardYet, "not to be ended: its agent could not report yet")
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
	return because(lifecycle.ReasonPoolMinimum, "idle, as its job pool wants it: %s wait for a job there", plural.Of(n, "host or more", "hosts or more"))
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
func underHold(hold fleethold.Hold, v policy.HostVerdict) lifecycle.Reason {
	done := "ended"
	if v.Action == lifecycle.ActionMarkIdle || v.Action == lifecycle.ActionMarkOrphan {
		done = "marked"
	}
	return lifecycle.Because(lifecycle.ReasonFleetHeld, "%s; else it would be %s: %s", hold, done, v.Reason)
}

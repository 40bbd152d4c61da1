package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// after are the conditions that may follow a condition: the table of design
// section 4, written down once more.
var after = map[string][]string{
	"created":          {"running", "terminated"},
	"running":          {"idle (releasing)", "terminated"},
	"idle (releasing)": {"idle (pooled)", "idle (resetting)", "terminated"},
	"idle (resetting)": {"idle (releasing)", "terminated"},
	"idle (pooled)":    {"claimed", "idle (releasing)", "idle (stopped)", "terminated"},
	"idle (stopped)":   {"claimed", "terminated"},
	"claimed":          {"running", "idle (releasing)", "idle (stopped)", "terminated"},
}

// checkRecord holds a write of a record against the rules.
func (p *ports) checkRecord(before, now lifecycle.Record) {
	from, to := before.Condition(), now.Condition()
	moved := from != to
	assigned := before.RunID != now.RunID || (moved && to == "terminated") || leavesStandby(before, now) || from == "idle (resetting)" && moved && to != "terminated"
	switch {
	case now.Version != before.Version+1:
		p.broken("version", "%s goes from version %d to %d", now.HostKey, before.Version, now.Version)
	case moved && !slices.Contains(after[from], to):
		p.broken("transition", "%s goes from %s to %s", now.HostKey, from, to)
	case assigned && now.Assignment != before.Assignment+1, !assigned && now.Assignment != before.Assignment:
		p.broken("assignment", "%s goes from %d (run %q) to %d (run %q)", now.HostKey, before.Assignment, before.RunID, now.Assignment, now.RunID)
	case now.TrustKey != before.TrustKey && !(before.Unused() && to == "claimed") && !(before.Resetting() && now.Renewed()):
		p.broken("trust", "%s changes its trust key", now.HostKey)
	case now.State != lifecycle.StateTerminated && (now.DueAt.IsZero() || now.DueAt.After(now.Threshold) && now.DueAt.After(p.now().Add(unit))):
		p.broken("due", "%s is due after its threshold", now.HostKey)
	}
	if moved {
		p.checkMoved(before, now)
	} else if to == "terminated" && now.DueAt.IsZero() && p.cloud().of(now.HostKey).State != lifecycle.MachineGone {
		p.broken("forget", "%s is forgotten while its machine is %s", now.HostKey, p.cloud().of(now.HostKey).State)
	}
}

func (p *ports) checkMoved(before, now lifecycle.Record) {
	h := p.agent(now.HostKey)
	switch to := now.Condition(); {
	case to == "running" && waits(now):
		p.checkLabeled(now, h)
	case to == "running" && h.registered != now.Assignment:
		p.broken("ready", "%s is running in assignment %d and registered for %d", now.HostKey, now.Assignment, h.registered)
	case to == "idle (pooled)" && (h.cleaned != now.Assignment || h.busy):
		p.broken("pooled dirty", "%s is pooled in assignment %d, was cleaned in %d, busy %t", now.HostKey, now.Assignment, h.cleaned, h.busy)
	case to == "idle (pooled)" && now.Retiring:
		p.broken("drained", "%s is pooled while retiring: %s", now.HostKey, now.RetiringReason)
	case to == "idle (pooled)" && p.x.bounds.Resets && p.cloud().of(now.HostKey).root != renewedFor(now):
		p.broken("new root", "%s is pooled with the root volume %q, want %q", now.HostKey, p.cloud().of(now.HostKey).root, renewedFor(now))
	case to == "terminated" && before.State == lifecycle.StateRunning && before.Threshold.After(p.now()):
		p.broken("running ended", "%s is ended before its threshold: %s", now.HostKey, now.Reason)
	case to == "terminated" && p.busy[now.HostKey] && p.runtimeLeft(before):
		p.broken("busy ended", "%s is ended while busy: %s", now.HostKey, now.Reason)
	}
}

// renewedFor is the token of the replacement that a pooled host had in the assignment before.
func renewedFor(r lifecycle.Record) string {
	if r.RootVolume == nil {
		return "a new one"
	}
	r.Assignment--
	return r.ReplacementToken()
}

// checkPower checks that only the machine of a host that waits stopped is stopped, without a job, and only that of one that a run has is started.
func (p *ports) checkPower(key string, to lifecycle.MachineState) {
	r, ok := p.record(key)
	if fits := to == lifecycle.MachineStopped && r.Stopped() || to == lifecycle.MachineRunning && r.Starting(); !ok || !fits || p.agent(key).busy {
		p.broken("stopped", "the machine of %s is to be %s, and its record is %s, busy %t", key, to, r.Condition(), p.agent(key).busy)
	}
}

// checkReplacing checks that the root volume of no other host is replaced than of one that waits for it, without a job.
func (p *ports) checkReplacing(key string) {
	if r, ok := p.record(key); !ok || !r.Resetting() || p.agent(key).busy {
		p.broken("new root", "the root volume of %s is replaced, which is %s, busy %t", key, r.Condition(), p.agent(key).busy)
	}
}

// waits reports whether the host waits for a run with a registration, or serves one by it.
func waits(r lifecycle.Record) bool { return r.Standby != nil && !r.Standby.Discarded }

// leavesStandby reports whether a host that waited with a registration goes on without it, which begins another assignment.
func leavesStandby(before, now lifecycle.Record) bool {
	return before.Pooled() && now.Releasing() || before.RunID == now.RunID && before.State == lifecycle.StateClaimed && now.State == lifecycle.StateClaimed &&
		waits(before) && !waits(now)
}

// checkLabels checks that the labels of a run are set only after it has claimed the host.
func (p *ports) checkLabels(key string, of int64, run string) {
	r, ok := p.record(key)
	if ok && r.Standby != nil && r.Standby.Assignment == of && r.RunID != run {
		p.broken("labels", "the runner of %s gets the labels of %s, and is that of %q", key, run, r.RunID)
	}
}

// checkLabeled checks that a host that is ready by the registration that it waited with has the labels of its run.
func (p *ports) checkLabeled(r lifecycle.Record, h agent) {
	known, _ := in[runner](p, runnerCell+cell(hostOf(r.HostKey)))
	if known.of != r.Standby.Assignment || known.run != r.RunID || h.registered != known.of {
		p.broken("labels", "%s is ready for %s by assignment %d; GitHub has set those of %q in %d", r.HostKey, r.RunID, r.Standby.Assignment, known.run, known.of)
	}
}

// runtimeLeft reports whether a job may still run on the host.
func (p *ports) runtimeLeft(r lifecycle.Record) bool {
	switch {
	case r.State == lifecycle.StateRunning:
		return r.Threshold.After(p.now())
	case r.Releasing() && !r.RuntimeEndsAt.IsZero():
		return r.RuntimeEndsAt.After(p.now())
	}
	return r.Threshold.Add(unit).After(p.now())
}

func (p *ports) agent(key string) agent {
	h, _ := in[agent](p, agentCell+cell(hostOf(key)))
	return h
}

// checkClaim checks that a claim takes effect only under its whole condition.
func (p *ports) checkClaim(c lifecycle.Claim, before lifecycle.Record) {
	if !before.Pooled() || before.Assignment != c.Assignment || !before.Threshold.After(c.Now.Add(policy().ClaimMargin)) {
		p.broken("claim", "%s is claimed while %s in assignment %d, by a message of %d", before.HostKey, before.Condition(), before.Assignment, c.Assignment)
	}
	if before.Retiring {
		p.broken("claim", "%s is claimed while retiring", before.HostKey)
	}
}

// checkRequest holds a write of a request against the rules.
func (p *ports) checkRequest(before, now lifecycle.Request) {
	switch {
	case now.Version != before.Version+1:
		p.broken("version", "request %s goes from version %d to %d", now.RequestID, before.Version, now.Version)
	case before.Settled() && before.Outcome != now.Outcome, before.Released() && !before.ReleasedAt.Equal(now.ReleasedAt):
		p.broken("transition", "request %s goes from outcome %q to %q", now.RequestID, before.Outcome, now.Outcome)
	case !before.Settled() && now.Outcome == lifecycle.OutcomeReady && (len(now.Taken) < now.Spec.MinimumCount || len(now.Taken) > now.Spec.Count):
		p.broken("ready", "request %s is settled with %d hosts", now.RequestID, len(now.Taken))
	}
	seen := map[string]bool{}
	for _, t := range now.Taken {
		if seen[t.HostKey] {
			p.broken("given twice", "request %s has %s twice", now.RequestID, t.HostKey)
		}
		seen[t.HostKey] = true
	}
	if before.Launch == nil && now.Launch != nil {
		p.checkReuse(now)
		p.checkPaused("launches for request " + now.RequestID)
	}
}

// checkReuse checks that no launch is intended while a host has been waiting in the pool
// for a unit (unless others may be about to claim it) or is assigned to the request.
func (p *ports) checkReuse(q lifecycle.Request) {
	if provisioning, sweeping := p.crowd(); provisioning > 1 || sweeping > 0 {
		return
	}
	for _, r := range p.listed(all) {
		switch {
		case r.Pooled() && !r.Retiring && r.Threshold.After(p.now().Add(policy().ClaimMargin)) && r.PooledAt.Before(p.now()):
			p.broken("reuse", "request %s launches while %s waits in the pool", q.RequestID, r.HostKey)
		case r.RunID == q.RunID && r.RequestID == q.RequestID && !q.Has(r.HostKey) && slices.Contains(p.named, r.HostKey):
			p.broken("reuse", "request %s launches while %s is %s for it", q.RequestID, r.HostKey, r.Condition())
		}
	}
}

// namingRuns are the hosts that name a run.
func (p *ports) namingRuns() []string {
	var keys []string
	for _, r := range p.listed(all) {
		if r.RunID != "" {
			keys = append(keys, r.HostKey)
		}
	}
	return keys
}

func all(lifecycle.Record) bool { return true }

// crowd is how many operations of each kind there are.
func (p *ports) crowd() (provisioning, sweeping int) {
	n := int(p.look(crowdCell))
	return n % 8, n / 8
}

// checkLaunch checks that one number is one order, for no more hosts than were asked for.
func (p *ports) checkLaunch(there cloud, order lifecycle.LaunchOrder) {
	for _, m := range there.machines {
		if m.RequestID == order.RequestID && m.Machine.Launch == order.Number && m.token != order.Token {
			p.broken("launch", "launch %d of request %s has another token than before", order.Number, order.RequestID)
		}
	}
}

// checkEnd checks that a machine ends after its record.
func (p *ports) checkEnd(key string) {
	if r, ok := p.record(key); ok && r.State != lifecycle.StateTerminated {
		p.broken("machine ended", "%s is ended while its record is %s", key, r.Condition())
	}
}

// checkStep checks that an operation fails only in the ways that it documents.
func (p *ports) checkStep(name string, err error) {
	var transition *lifecycle.TransitionError
	switch {
	case errors.As(err, &transition):
		p.broken("transition", "%s: %v", name, err)
	case err != nil && !expected(err) && !(errors.Is(err, lifecycle.ErrUnavailable) && p.lost):
		p.broken("unexpected error", "%s: %v", name, err)
	}
}

// expected are the errors with which use-cases end.
func expected(err error) bool {
	var short *fleet.ShortError
	var released *fleet.ReleasedError
	return errors.As(err, &short) || errors.As(err, &released)
}

// broken ends the exploration; the explorer adds the way there.
func (p *ports) broken(rule, format string, args ...any) {
	panic(&Violation{Rule: rule, What: fmt.Sprintf(format, args...)})
}

package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// after are the conditions that may follow a condition: the table of design
// section 4, written down once more.
var after = map[string][]string{
	"created":          {"running", "terminated"},
	"running":          {"idle (releasing)", "terminated"},
	"idle (releasing)": {"idle (pooled)", "terminated"},
	"idle (pooled)":    {"claimed", "terminated"},
	"claimed":          {"running", "idle (releasing)", "terminated"},
}

// checkRecord holds a write of a record against the rules.
func (s *state) checkRecord(p *ports, before, now lifecycle.Record) {
	from, to := before.Condition(), now.Condition()
	moved := from != to
	assigned := before.RunID != now.RunID || (moved && to == "terminated")
	switch {
	case now.Version != before.Version+1:
		s.broken("version", "%s goes from version %d to %d", now.HostKey, before.Version, now.Version)
	case moved && !slices.Contains(after[from], to):
		s.broken("transition", "%s goes from %s to %s", now.HostKey, from, to)
	case assigned && now.Assignment != before.Assignment+1, !assigned && now.Assignment != before.Assignment:
		s.broken("assignment", "%s goes from %d (run %q) to %d (run %q)", now.HostKey, before.Assignment, before.RunID, now.Assignment, now.RunID)
	case now.TrustKey != before.TrustKey:
		s.broken("trust", "%s changes its trust key", now.HostKey)
	case now.State != lifecycle.StateTerminated && (now.DueAt.IsZero() || now.DueAt.After(now.Threshold) && now.DueAt.After(s.now.Add(unit))):
		s.broken("due", "%s is due after its threshold", now.HostKey)
	}
	if moved {
		s.checkMoved(p, before, now)
	} else if to == "terminated" && now.DueAt.IsZero() && s.machine(now.HostKey).State != lifecycle.MachineGone {
		s.broken("forget", "%s is forgotten while its machine is %s", now.HostKey, s.machine(now.HostKey).State)
	}
}

func (s *state) checkMoved(p *ports, before, now lifecycle.Record) {
	h := s.host(now.HostKey)
	switch to := now.Condition(); {
	case to == "running" && h.registered != now.Assignment:
		s.broken("ready", "%s is running in assignment %d and registered for %d", now.HostKey, now.Assignment, h.registered)
	case to == "idle (pooled)" && (h.cleaned != now.Assignment || h.busy):
		s.broken("pooled dirty", "%s is pooled in assignment %d, was cleaned in %d, busy %t", now.HostKey, now.Assignment, h.cleaned, h.busy)
	case to == "terminated" && before.State == lifecycle.StateRunning && before.Threshold.After(s.now):
		s.broken("running ended", "%s is ended before its threshold: %s", now.HostKey, now.Reason)
	case to == "terminated" && p.busy[now.HostKey] && s.runtimeLeft(before):
		s.broken("busy ended", "%s is ended while busy: %s", now.HostKey, now.Reason)
	}
}

// runtimeLeft: a job may still run on the host.
func (s *state) runtimeLeft(r lifecycle.Record) bool {
	switch {
	case r.State == lifecycle.StateRunning:
		return r.Threshold.After(s.now)
	case r.Releasing() && !r.RuntimeEndsAt.IsZero():
		return r.RuntimeEndsAt.After(s.now)
	}
	return r.Threshold.Add(unit).After(s.now)
}

func (s *state) host(key string) host {
	return s.hosts[slices.IndexFunc(s.hosts, func(h host) bool { return h.key == key })]
}

func (s *state) machine(key string) machine {
	return s.machines[slices.IndexFunc(s.machines, func(m machine) bool { return m.HostKey == key })]
}

// checkClaim: a claim takes effect under its whole condition only.
func (s *state) checkClaim(c lifecycle.Claim, before lifecycle.Record) {
	if !before.Pooled() || before.Assignment != c.Assignment || !before.Threshold.After(c.Now.Add(policy().ClaimMargin)) {
		s.broken("claim", "%s is claimed while %s in assignment %d, by a message of %d", before.HostKey, before.Condition(), before.Assignment, c.Assignment)
	}
}

// checkRequest holds a write of a request against the rules.
func (s *state) checkRequest(p *ports, before, now lifecycle.Request) {
	switch {
	case now.Version != before.Version+1:
		s.broken("version", "request %s goes from version %d to %d", now.RequestID, before.Version, now.Version)
	case before.Settled() && before.Outcome != now.Outcome, before.Released() && !before.ReleasedAt.Equal(now.ReleasedAt):
		s.broken("transition", "request %s goes from outcome %q to %q", now.RequestID, before.Outcome, now.Outcome)
	case !before.Settled() && now.Outcome == lifecycle.OutcomeReady && (len(now.Taken) < now.Spec.MinimumCount || len(now.Taken) > now.Spec.Count):
		s.broken("ready", "request %s is settled with %d hosts", now.RequestID, len(now.Taken))
	}
	seen := map[string]bool{}
	for _, t := range now.Taken {
		if seen[t.HostKey] {
			s.broken("given twice", "request %s has %s twice", now.RequestID, t.HostKey)
		}
		seen[t.HostKey] = true
	}
	if before.Launch == nil && now.Launch != nil {
		s.checkReuse(p, now)
	}
}

// checkReuse: no launch is intended while a host has been waiting in the pool
// for a unit, unless others may be after it, or names the request already.
func (s *state) checkReuse(p *ports, q lifecycle.Request) {
	if s.provisioning() > 1 || s.sweeping() > 0 {
		return
	}
	for _, r := range s.records() {
		switch {
		case r.Pooled() && r.Threshold.After(s.now.Add(policy().ClaimMargin)) && r.PooledAt.Before(s.now):
			s.broken("reuse", "request %s launches while %s waits in the pool", q.RequestID, r.HostKey)
		case r.RunID == q.RunID && r.RequestID == q.RequestID && !q.Has(r.HostKey) && slices.Contains(p.named, r.HostKey):
			s.broken("reuse", "request %s launches while %s is %s for it", q.RequestID, r.HostKey, r.Condition())
		}
	}
}

// named are the hosts that name a run.
func (s *state) named() []string {
	var keys []string
	for _, r := range s.records() {
		if r.RunID != "" {
			keys = append(keys, r.HostKey)
		}
	}
	return keys
}

func (s *state) provisioning() int {
	n := 0
	for _, o := range s.ops {
		if o != nil && strings.HasPrefix(o.name, "provision") {
			n++
		}
	}
	return n
}

// checkLaunch: one number is one order, and is made for no more than is asked.
func (s *state) checkLaunch(order lifecycle.LaunchOrder) {
	for _, m := range s.machines {
		if m.RequestID == order.RequestID && m.Machine.Launch == order.Number && m.token != order.Token {
			s.broken("launch", "launch %d of request %s has another token than before", order.Number, order.RequestID)
		}
	}
}

// checkEnd: a machine ends after its record.
func (s *state) checkEnd(key string) {
	if r, err := s.store.Instance(background, key); err == nil && r.State != lifecycle.StateTerminated {
		s.broken("machine ended", "%s is ended while its record is %s", key, r.Condition())
	}
}

// settlesWithin is after how many units everything has to be over: a run has
// three, a request, a release and the time in the pool have one each, and what
// comes late for one waits for the next.
const settlesWithin = 16

// checkSettles: should both replicas crash now and start again, everything
// comes to its end by the sweeps alone.
func (x *explorer) checkSettles(s *state) {
	fp := s.fingerprint(false)
	if x.settled[fp] {
		return
	}
	n := s.branch(choice{kind: "crash", detail: "of both replicas"}).mutable()
	n.ops = [slots]*op{}
	passed := []print{fp}
	for range settlesWithin {
		n.told = nil
		n.agentsAct()
		n.sweepOnce()
		fp := n.fingerprint(false)
		if n.over() || x.settled[fp] {
			for _, p := range passed {
				x.settled[p] = true
			}
			x.report.Settled++
			return
		}
		passed = append(passed, fp)
		n.pass()
	}
	n.broken("left over", "after %d units: %s", settlesWithin, n.rest())
}

// agentsAct lets every agent see its record and answer it.
func (s *state) agentsAct() {
	for i := range s.hosts {
		s.hosts[i].busy = false
		if s.machines[i].State != lifecycle.MachineRunning {
			continue
		}
		r, err := s.store.Instance(background, s.hosts[i].key)
		if err != nil {
			continue
		}
		if p, ok := s.hosts[i].reading(r, false); ok {
			s.read(i, r, p)
			s.report(i)
		}
	}
}

// sweepSteps is more steps than one sweep can have reason to make.
const sweepSteps = 1000

func (s *state) sweepOnce() {
	name, begin := sweep()
	s.start(sweepSlot(0), name, begin)
	built, p := s.ops[sweepSlot(0)].rebuilt(s)
	s.ops[sweepSlot(0)] = nil
	for range sweepSteps {
		p.script = nil
		progress, err := built.Step(background, s.now)
		switch {
		case err != nil && !expected(err):
			s.broken("unexpected error", "sweep: %v", err)
		case progress.Done:
			return
		}
	}
	s.broken("restless", "a sweep made %d steps", sweepSteps)
}

// over: nothing lives, nothing is due, and every request has its outcome.
func (s *state) over() bool { return s.rest() == "" }

// rest says what is still there.
func (s *state) rest() string {
	var rest []string
	for _, r := range s.records() {
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			rest = append(rest, fmt.Sprintf("%s is %s", r.HostKey, r.Condition()))
		}
	}
	for i, ask := range s.x.bounds.Asks {
		q, err := s.store.Request(background, repository, ask.Run, fmt.Sprintf("ask-%d", i+1))
		if err == nil && (!q.Settled() || !q.DueAt.IsZero()) {
			rest = append(rest, fmt.Sprintf("request %s has outcome %q", q.RequestID, q.Outcome))
		}
	}
	for _, m := range s.machines {
		if _, err := s.store.Instance(background, m.HostKey); err == nil && m.State != lifecycle.MachineGone {
			rest = append(rest, fmt.Sprintf("machine %s is %s", m.HostKey, m.State))
		}
	}
	return strings.Join(rest, ", ")
}

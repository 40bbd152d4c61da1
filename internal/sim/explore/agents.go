package explore

import "github.com/remuda-ci/remuda/internal/lifecycle"

// reading is the answer that an agent will give to a record.
func (h agent) reading(r lifecycle.Record, gone, fails bool) (lifecycle.Report, bool) {
	p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: epoch, Assignment: r.Assignment, Busy: h.busy}
	if waits(r) {
		return h.waiting(p, r, gone, fails)
	}
	switch r.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
		p.Signal = lifecycle.SignalRegOK
		if s := r.Standby; s != nil && h.busy && h.registered <= s.Assignment {
			p.Signal = lifecycle.SignalNone // its job ends before the host registers for its run
			return p, !fails
		}
		if fails {
			p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseHost
		}
		return p, !fails || (r.State != lifecycle.StateRunning && h.registered < r.Assignment)
	case lifecycle.StateIdle:
		if !h.busy {
			p.Signal = lifecycle.SignalRemoveRegOK
		}
		return p, !fails
	}
	return p, false
}

// waiting is reading of a host that registers ahead of need, or serves its run by the registration that it waited with: it
// registers once.
func (h agent) waiting(p lifecycle.Report, r lifecycle.Record, gone, fails bool) (lifecycle.Report, bool) {
	p.Signal = lifecycle.SignalRegOK
	if gone || fails {
		p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseHost
	}
	return p, !fails || !gone && r.State != lifecycle.StateRunning
}

// reads is the agent after it has seen its record and acted on it. Its answer
// comes later.
func (h agent) reads(p lifecycle.Report, r lifecycle.Record) agent {
	h.answer = &p
	switch p.Signal {
	case lifecycle.SignalRegOK:
		h.registered = p.Assignment
		if waits(r) {
			h.registered = r.Standby.Assignment
		}
	case lifecycle.SignalRemoveRegOK:
		h.cleaned = p.Assignment
	}
	return h
}

// answers is the agent's answer reaching the store.
func (h agent) answers() (agent, lifecycle.Report) {
	p := *h.answer
	p.Busy = h.busy
	if p.Busy && p.Signal == lifecycle.SignalRemoveRegOK {
		p.Signal = lifecycle.SignalNone
	}
	h.answer = nil
	return h, p
}

// hasRegistered reports whether the registration of an assignment is the agent's, and not deleted by it.
func (h agent) hasRegistered(assignment int64) bool {
	return h.registered == assignment && h.cleaned <= assignment
}

// deregisters reports whether an agent that comes from its state before to that after has given up a registration about which
// GitHub may be asked. Others see that at once, so it is a move of its own.
func (x *explorer) deregisters(before, after agent) bool {
	return x.bounds.Hot && before.hasRegistered(before.registered) && !after.hasRegistered(before.registered)
}

// serving reports whether the runner listens, as far as its agent knows.
func (h agent) serving() bool {
	return h.registered > h.cleaned && (h.answer == nil || h.answer.Signal == lifecycle.SignalRegOK)
}

// acting is the agent of a host with its record, while there is something that
// it can do: its machine runs, and its record does not say that it has ended.
func (x *explorer) acting(w *world, host int) (agent, lifecycle.Record, bool) {
	r, ok := at[lifecycle.Record](x.values, w, instanceCell+cell(host))
	if !ok || r.State == lifecycle.StateTerminated {
		return agent{}, r, false
	}
	h, ok := at[agent](x.values, w, agentCell+cell(host))
	there, _ := at[cloud](x.values, w, cloudCell)
	return h, r, ok && there.machines[host].State == lifecycle.MachineRunning
}

// readings are what the agent of a host may come to by reading its record now:
// first when all goes well, then when its registration fails; 0: it reads
// nothing new.
func (x *explorer) readings(w *world, host int) [2]id {
	if !x.runs(w, host) {
		return [2]id{}
	}
	key := [4]id{w[instanceCell+cell(host)], w[reportCell+cell(host)], w[agentCell+cell(host)], w[runnerCell+cell(host)]}
	if known, ok := x.read[key]; ok {
		return known
	}
	var found [2]id
	h, r, ok := x.acting(w, host)
	if !ok || h.answer != nil {
		return found
	}
	stored, _ := at[lifecycle.Report](x.values, w, reportCell+cell(host))
	for i, fails := range [2]bool{false, true} {
		p, ok := h.reading(r, x.gone(w, host, r), fails)
		reported := stored.Assignment == p.Assignment && stored.Signal == p.Signal && stored.Busy == p.Busy && stored.Cause == p.Cause
		if ok && !reported {
			found[i] = x.values.id(h.reads(p, r))
		}
	}
	x.read[key] = found
	return found
}

// gone reports whether GitHub has deleted the registration with which the host waits, or by which it serves.
func (x *explorer) gone(w *world, host int, r lifecycle.Record) bool {
	known, _ := at[runner](x.values, w, runnerCell+cell(host))
	return r.Standby != nil && known.of == r.Standby.Assignment && known.gone
}

// labeled reports whether GitHub may give the host a job because the labels of its run were set, and the hook lets that in.
func (x *explorer) labeled(w *world, host int, h agent, r lifecycle.Record) bool {
	known, _ := at[runner](x.values, w, runnerCell+cell(host))
	return known.run != "" && !known.gone && known.of == h.registered && h.cleaned <= known.of && r.RunID == known.run
}

// forgets is GitHub deleting the registration with which a host waits, or by which it serves its run while no job runs.
func (x *explorer) forgets(s *state, host int) {
	h, r, ok := x.acting(&s.world, host)
	if !ok || h.busy || r.Standby == nil || h.registered != r.Standby.Assignment || x.gone(&s.world, host, r) || s.used.failures >= x.most.failures {
		return
	}
	c := runnerCell + cell(host)
	known, _ := at[runner](x.values, &s.world, c)
	if known.of != h.registered {
		known = runner{of: h.registered}
	}
	known.gone = true
	after := *s
	after.used.failures++
	after.world[c] = x.values.id(known)
	x.land(s, after, -1, -1, "forget", "the runner of "+hostKey(host))
}

// runs reports whether the host's machine runs.
func (x *explorer) runs(w *world, host int) bool {
	there, _ := at[cloud](x.values, w, cloudCell)
	return host < len(there.machines) && there.machines[host].State == lifecycle.MachineRunning
}

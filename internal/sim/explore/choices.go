package explore

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// choice is one thing that may happen next.
type choice struct {
	kind, detail string
	do           func(*state)
}

func (c choice) String() string { return c.kind + " " + c.detail }

var onReplica = [replicas]string{" on replica 0", " on replica 1"}

// choices are all that may happen in the state.
func (x *explorer) choices(s *state) []choice {
	var all []choice
	add := func(kind, detail string, do func(*state)) { all = append(all, choice{kind, detail, do}) }
	b, u := x.bounds, s.used
	for slot, o := range s.ops {
		if o == nil {
			continue
		}
		add("step", o.name+onReplica[slot/2], func(n *state) { n.stepOp(slot, false) })
		if u.lost < b.Lost {
			add("lose", "the answer to "+o.name+onReplica[slot/2], func(n *state) {
				n.mutable().used.lost++
				n.stepOp(slot, true)
			})
		}
	}
	for r := range replicas {
		x.starts(s, r, add)
		if u.crashes < b.Crashes && (s.ops[callerSlot(r)] != nil || s.ops[sweepSlot(r)] != nil) {
			add("crash", onReplica[r], func(n *state) {
				n.mutable().used.crashes++
				n.ops[callerSlot(r)], n.ops[sweepSlot(r)] = nil, nil
			})
		}
	}
	for i := range s.hosts {
		x.agentChoices(s, i, add)
	}
	if u.passes < b.Passes {
		add("pass", "of a unit of time", func(n *state) {
			n.mutable().used.passes++
			n.pass()
		})
	}
	return all
}

// starts are the operations that a replica may take up.
func (x *explorer) starts(s *state, r int, add func(string, string, func(*state))) {
	b := x.bounds
	if s.ops[callerSlot(r)] == nil {
		for i := range b.Asks {
			if s.asked[i] <= b.Retries {
				name, begin := x.provision(i)
				add("start", name+onReplica[r], func(n *state) {
					n.mutable().asked[i]++
					n.start(callerSlot(r), name, begin)
				})
			}
		}
		if s.used.releases < b.Releases {
			for _, run := range x.runs(s) {
				name, begin := release(run)
				add("start", name+onReplica[r], func(n *state) {
					n.mutable().used.releases++
					n.start(callerSlot(r), name, begin)
				})
			}
		}
	}
	if s.ops[sweepSlot(r)] == nil && s.sweeping() < b.Sweeps && s.due() {
		name, begin := sweep()
		add("start", name+onReplica[r], func(n *state) { n.start(sweepSlot(r), name, begin) })
	}
}

// runs are those that somebody asked for.
func (x *explorer) runs(s *state) []string {
	var runs []string
	for i, ask := range x.bounds.Asks {
		if s.asked[i] > 0 && (len(runs) == 0 || runs[len(runs)-1] != ask.Run) {
			runs = append(runs, ask.Run)
		}
	}
	return runs
}

func (s *state) sweeping() int {
	n := 0
	for r := range replicas {
		if s.ops[sweepSlot(r)] != nil {
			n++
		}
	}
	return n
}

// due: a sweep would find something.
func (s *state) due() bool {
	hosts := must1(s.store.DueInstances(background, s.now, lifecycle.PageOf{}))
	requests := must1(s.store.DueRequests(background, s.now, lifecycle.PageOf{}))
	return len(hosts.Items)+len(requests.Items) > 0
}

// agentChoices are what a host's agent, its runner and its machine may do.
func (x *explorer) agentChoices(s *state, i int, add func(string, string, func(*state))) {
	h := s.hosts[i]
	if s.machines[i].State != lifecycle.MachineRunning {
		return
	}
	r, err := s.store.Instance(background, h.key)
	if err != nil || r.State == lifecycle.StateTerminated {
		return
	}
	if h.answer != nil {
		add("report", h.key, func(n *state) { n.mutable().report(i) })
	} else {
		for _, fail := range []bool{false, true} {
			p, ok := h.reading(r, fail)
			if !ok || (fail && s.used.failures >= x.bounds.Failures) || s.reported(p) {
				continue
			}
			add("read", fmt.Sprintf("%s (fails %t)", h.key, fail), func(n *state) {
				if fail {
					n.mutable().used.failures++
				}
				n.mutable().read(i, r, p)
			})
		}
	}
	switch {
	case h.busy:
		add("job", "ends on "+h.key, func(n *state) { n.mutable().hosts[i].busy = false })
	case s.used.jobs < x.bounds.Jobs && h.registered > h.cleaned && h.serving():
		add("job", "begins on "+h.key, func(n *state) {
			n.mutable().used.jobs++
			n.hosts[i].busy = true
		})
	}
}

// pass lets a unit of time pass: every threshold that was set before passes
// with it, hidden messages reappear, and what ends has ended.
func (s *state) pass() {
	s.now = s.now.Add(unit)
	for i := range s.messages {
		s.messages[i].hidden = false
	}
	for i, o := range s.ops {
		if o != nil {
			later := *o
			built, p := later.rebuilt(s)
			later.built = nil
			later.settle(s, built, p)
			s.ops[i] = &later
		}
	}
	for i := range s.machines {
		if s.machines[i].State == lifecycle.MachineEnding {
			s.machines[i].State = lifecycle.MachineGone
		}
	}
}

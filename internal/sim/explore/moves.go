package explore

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// early is an actor that only reads and may do so just before a move, since
// afterwards it would read something else: a running operation, one that is
// started for this, or the agent of a host.
type early struct {
	place int
	start *kind
	host  int
	// nodes are how far the operation may have come; agents what the agent may
	// have come to, and whether that is a failure.
	nodes  []*node
	agents [2]id
}

// expand visits all that may come next.
//
// A step that only reads is made late: together with the next write of its
// operation, or just before another actor's move after which it would read
// something else. At every moment in between it would read the same, and a read
// is invisible to others, so no behavior is lost. An operation that reads and
// does not write afterwards does nothing.
func (x *explorer) expand(s *state) {
	for i, n := range s.ops {
		if n != nil && (i%replicas == 0 || n != s.ops[i-1]) {
			x.advance(s, *s, i, "step")
		}
	}
	for _, k := range x.kinds {
		after := *s
		if i := x.starts(s, &after, k, -1); i >= 0 {
			after.ops[i] = k.start
			x.advance(s, after, i, "start")
		}
	}
	for host := range maxHosts {
		x.agentMoves(s, host)
		x.forgets(s, host)
	}
	x.orders(s)
	x.passes(s)
}

func (x *explorer) passes(s *state) {
	if s.used.passes < x.most.passes {
		after := *s
		after.used.passes++
		after.world = x.pass(s.world)
		x.land(s, after, -1, -1, "pass", "of a unit of time")
	}
}

// starts takes an operation up in the state, if one may still be started; from
// is what it starts from. It returns its place, -1: it may not. The place taken
// is that of another that is there until after the start.
func (x *explorer) starts(from, s *state, k *kind, taken int) int {
	place := s.free(k, taken)
	switch {
	case place < 0:
	case k.sweep:
		if s.sweeping(taken) < x.bounds.Sweeps && (x.bounds.Idle || x.due(&from.world)) {
			return place
		}
	case k.provision:
		if s.used.asked[k.ask] < x.most.asked[k.ask] {
			s.used.asked[k.ask]++
			return place
		}
	case s.used.releases < x.most.releases && x.asked(from, k.run):
		s.used.releases++
		return place
	}
	return -1
}

// asked reports whether a caller has asked for the run.
func (x *explorer) asked(s *state, run string) bool {
	for i, ask := range x.bounds.Asks {
		if ask.Run == run && s.used.asked[i] > 0 {
			return true
		}
	}
	return false
}

// due reports whether a sweep would find something.
func (x *explorer) due(w *world) bool {
	now := instant(w[clockCell])
	for c := range cells {
		switch v := x.values.all[w[c]].v.(type) {
		case lifecycle.Record:
			if isDue(v.DueAt, now) {
				return true
			}
		case lifecycle.Request:
			if isDue(v.DueAt, now) {
				return true
			}
		}
		if c == queueCell {
			break
		}
	}
	return false
}

// readsAtMost is more steps than an operation can have reason to make without
// writing anything or coming back to where it was.
const readsAtMost = 64

// advance brings the operation in the place to its next write, or its end.
func (x *explorer) advance(from *state, s state, place int, kind string) {
	n := s.ops[place]
	name := n.kind.name
	x.doing(kind, name)
	w := s.crowded(s.world)
	been := make([]*node, 0, readsAtMost)
	for range readsAtMost {
		been = append(been, n)
		if s.used.lost < x.most.lost {
			if out := x.step(n, &w, true); out.lost {
				after := s
				after.used.lost++
				after.world, after.ops[place] = out.on(s.world), out.next
				x.land(from, after, place, -1, "lose", "the answer to "+name)
			}
		}
		out := x.step(n, &w, false)
		if out.acts() || out.next == nil {
			if kind == "start" && !out.acts() {
				return
			}
			after := s
			after.world, after.ops[place] = out.on(s.world), out.next
			x.land(from, after, place, -1, kind, name)
			return
		}
		if n = out.next; slices.Contains(been, n) {
			return
		}
	}
	x.ports.broken("restless", "%s made %d steps without a write", name, readsAtMost)
}

// agentMoves are what a host's agent, its runner and its machine may do.
func (x *explorer) agentMoves(s *state, host int) {
	h, r, ok := x.acting(&s.world, host)
	if !ok {
		return
	}
	c := agentCell + cell(host)
	variants := [3]id{s.world[c]}
	copy(variants[1:], x.fails(s, x.readings(&s.world, host)))
	for i, v := range variants {
		if v == 0 {
			continue
		}
		h, _ = x.values.all[v].v.(agent)
		after := *s
		if i == 2 {
			after.used.failures++
		}
		if was, _ := x.values.all[s.world[c]].v.(agent); x.deregisters(was, h) {
			gone := after
			gone.world[c] = v
			x.land(s, gone, -1, host, "read", hostKey(host))
		}
		if h.answer != nil {
			answered, p := h.answers()
			told := after
			told.world[c], told.world[reportCell+cell(host)] = x.values.id(answered), x.values.id(p)
			x.land(s, told, -1, host, "report", hostKey(host))
		}
		switch {
		case h.busy:
			h.busy = false
			after.world[c] = x.values.id(h)
			x.land(s, after, -1, host, "job", "ends on "+hostKey(host))
		case s.used.jobs < x.most.jobs && (h.serving() || x.labeled(&s.world, host, h, r)):
			h.busy = true
			after.used.jobs++
			after.world[c] = x.values.id(h)
			x.land(s, after, -1, host, "job", "begins on "+hostKey(host))
		}
	}
}

// fails leaves out a failure when the bounds allow no more of them.
func (x *explorer) fails(s *state, readings [2]id) []id {
	if s.used.failures >= x.most.failures {
		return readings[:1]
	}
	return readings[:]
}

// land visits the states that a move leads to: the move alone, the move after
// reads that others made just before it, and the move with a crash just after it.
func (x *explorer) land(from *state, after state, place, host int, kind, what string) {
	x.doing(kind, what)
	x.report.Choices[kind]++
	x.early = x.early[:0]
	var before, then world
	before, then = from.crowded(from.world), after.crowded(after.world)
	if from.world != after.world && !x.plainly {
		for i, n := range from.ops {
			if n != nil && i != place {
				x.overtaken(early{place: i, host: -1}, n, &before, &then)
			}
		}
		for _, k := range x.kinds {
			s := *from
			for i := x.starts(from, &s, k, place); i >= 0; i = x.starts(from, &s, k, place) {
				s.ops[i] = k.start
				x.overtaken(early{place: -1, start: k, host: -1}, k.start, &before, &then)
			}
		}
		for i := range maxHosts {
			x.overtakenAgent(from, i, host, &after.world)
		}
	}
	x.combine(from, after, place, 0)
}

// overtaken finds how far an operation may have read before the move: up to
// each step that would come to something else after it.
func (x *explorer) overtaken(e early, n *node, before, then *world) {
	x.been = x.been[:0]
	for range readsAtMost {
		x.been = append(x.been, n)
		out := x.step(n, before, false)
		if out.acts() || out.next == nil {
			break
		}
		late := x.step(n, then, false)
		if late.acts() || late.next != out.next {
			e.nodes = append(e.nodes, out.next)
		}
		if n = out.next; slices.Contains(x.been, n) {
			break
		}
	}
	if len(e.nodes) > 0 {
		x.early = append(x.early, e)
	}
}

// overtakenAgent is overtaken for the agent of a host.
func (x *explorer) overtakenAgent(from *state, host, mover int, then *world) {
	c := cell(host)
	if host == mover || from.world[instanceCell+c] == then[instanceCell+c] && from.world[runnerCell+c] == then[runnerCell+c] {
		return
	}
	if _, _, ok := x.acting(then, host); !ok {
		return
	}
	before, after := x.readings(&from.world, host), x.readings(then, host)
	e := early{place: -1, host: host}
	for i := range before {
		if before[i] != 0 && before[i] != after[i] {
			e.agents[i] = before[i]
		}
	}
	if e.agents != [2]id{} {
		x.early = append(x.early, e)
	}
}

// combine visits the state with every choice of the early reads.
func (x *explorer) combine(from *state, s state, place, i int) {
	if i == len(x.early) {
		x.arrive(from, s, place)
		return
	}
	x.combine(from, s, place, i+1)
	e := &x.early[i]
	for _, n := range e.nodes {
		t := s
		at := e.place
		if e.start != nil {
			if at = x.starts(from, &t, e.start, place); at < 0 {
				break
			}
		}
		t.ops[at] = n
		x.combine(from, t, place, i+1)
	}
	for failure, a := range e.agents {
		t := s
		if a == 0 || (failure == 1 && t.used.failures >= x.most.failures) {
			continue
		}
		t.used.failures += uint8(failure)
		t.world[agentCell+cell(e.host)] = a
		x.combine(from, t, place, i+1)
	}
}

// arrive visits the state, and those that a crash just after the move leads to.
// An operation that crashes later has done nothing more until then, and it does
// not matter what it has read.
func (x *explorer) arrive(from *state, s state, place int) {
	x.visit(from, s)
	if !x.plainly && place >= 0 && s.ops[place] != nil && s.used.crashes < x.most.crashes {
		x.crashes(from, s, place)
	}
}

// crashes removes the operation in the place, and what else is on its replica:
// any one of the operations of the other sort, or none when the other replica
// has room for them.
func (x *explorer) crashes(from *state, s state, place int) {
	x.doing("crash", "after that of "+s.ops[place].kind.name)
	x.report.Choices["crash"]++
	s.used.crashes++
	s.ops[place] = nil
	first := replicas - place/replicas*replicas
	n := 0
	for i := first; i < first+replicas; i++ {
		if t := s; t.ops[i] != nil {
			n++
			t.ops[i] = nil
			x.visit(from, t)
		}
	}
	if n < replicas {
		x.visit(from, s)
	}
}

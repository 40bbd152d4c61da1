package explore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// node is an operation at one point of its progress. An operation is a function of
// the answers that its calls get, so once a step was tried in a world, the node knows
// what it does in every world that looks the same to it.
type node struct {
	number int
	kind   *kind
	// steps are how the operation came here. What it keeps in memory cannot be
	// copied, so it is rebuilt from them when a step has to be tried.
	steps []step
	// text is its progress, and what the rules remember of it; known are the
	// newest versions of the rows it knows.
	text     text
	known    []version
	meanings []uint32
	// next is what the next step does, and what it does when the answer of its
	// write is lost.
	next [2]*branch
}

// kind is an operation that may be started.
type kind struct {
	name             string
	provision, sweep bool
	// ask is the number of a provision's request, run that of a release.
	ask   int
	run   string
	begin func(*fleet.Fleet) op.Stated
	start *node
}

// step is what happened in one step of an operation.
type step struct {
	now     time.Time
	answers []answer
}

// branch is a point in a step: either it looks at a cell, and goes on by what
// is there, or it is over.
type branch struct {
	cell  cell
	seen  []id
	to    []*branch
	ended *outcome
}

// outcome is what a step does.
type outcome struct {
	writes []look
	// next is where the operation is then; nil: it is done.
	next *node
	// lost: the answer of a write was lost.
	lost bool
}

// acts reports whether the step changes something that others may see.
func (o *outcome) acts() bool { return len(o.writes) > 0 }

func (o *outcome) on(w world) world {
	for _, l := range o.writes {
		w[l.cell] = l.id
	}
	return w
}

// step is what the operation's next step does in the world.
func (x *explorer) step(n *node, w *world, lose bool) *outcome {
	first := &n.next[0]
	if lose {
		first = &n.next[1]
	}
	if out := (*first).known(w); out != nil {
		return out
	}
	out, looked := x.try(n, *w, lose)
	at := first
	for _, l := range looked {
		at = goesOn(at, l)
	}
	*at = &branch{ended: out}
	return out
}

// known is what the step does in the world, or nil if it was not tried in one like it.
func (b *branch) known(w *world) *outcome {
	for b != nil && b.ended == nil {
		i := slices.Index(b.seen, w[b.cell])
		if i < 0 {
			return nil
		}
		b = b.to[i]
	}
	if b == nil {
		return nil
	}
	return b.ended
}

// goesOn is where a step goes on that looks at this here.
func goesOn(b **branch, l look) **branch {
	if *b == nil {
		*b = &branch{cell: l.cell}
	}
	i := slices.Index((*b).seen, l.id)
	if i < 0 {
		i = len((*b).seen)
		(*b).seen, (*b).to = append((*b).seen, l.id), append((*b).to, nil)
	}
	return &(*b).to[i]
}

// try makes the step, and the steps after it that make no call: they change nothing
// that others see, and see nothing that others change. It also returns the cells on
// which the outcome depended.
func (x *explorer) try(n *node, w world, lose bool) (*outcome, []look) {
	o := x.rebuilt(n)
	p := x.ports
	p.world, p.lose = w, lose
	p.look(clockCell)
	next := node{kind: n.kind, steps: slices.Clip(n.steps)}
	done := false
	for !done {
		p.script = nil
		progress, err := o.Step(background, p.now())
		next.steps = append(next.steps, step{p.now(), p.script})
		p.checkStep(n.kind.name, err)
		done = progress.Done || (err != nil && !errors.Is(err, lifecycle.ErrUnavailable))
		if len(p.script) > 0 || progress.Wait > 0 {
			break
		}
	}
	out := &outcome{lost: p.lost}
	for c := range cells {
		if p.world[c] != w[c] {
			out.writes = append(out.writes, look{c, p.world[c]})
		}
	}
	if !done {
		out.next = x.rested(&next, o)
	}
	return out, slices.Clone(p.looked)
}

// rebuilt is the operation as it stands before its next step.
func (x *explorer) rebuilt(n *node) op.Stated {
	*x.ports = ports{x: x, busy: map[string]bool{}}
	o := n.kind.begin(x.fleet)
	for _, st := range n.steps {
		x.ports.script, x.ports.replaying = st.answers, true
		_, _ = o.Step(background, st.now)
	}
	x.ports.script, x.ports.replaying, x.ports.looked = nil, false, nil
	return o
}

// rested is the one node for the progress that the operation has made.
func (x *explorer) rested(n *node, o op.Stated) *node {
	t := &n.text
	t.add(n.kind.name)
	t.values(o.State(), x.ports.named, x.ports.busy, string(x.ports.pauseRead))
	key := t.exact()
	if known, ok := x.nodes[key]; ok {
		return known
	}
	n.known = t.known()
	n.number = len(x.nodes) + 1
	x.nodes[key] = n
	return n
}

// newFleet is the one fleet whose use-cases are explored.
func newFleet(p *ports, b Bounds) *fleet.Fleet {
	return must1(fleet.New(fleet.Options{
		Store: store.New(p), Guards: b.guards(p), Queue: queue{p}, Compute: compute{p}, GitHub: github{p}, Pools: pools(b),
		Classes:    map[string]fleet.Class{className: {CPU: 2, MemoryMiB: 4096}},
		RandomText: func() string { return "label" }, AtOnce: 1,
		Replica: "any", Rand: rand.New(rand.NewPCG(1, 1)),
		Timing: b.timing(),
	}))
}

// newKind is an operation at its beginning.
func (x *explorer) newKind(name string, begin func(*fleet.Fleet) op.Stated) *kind {
	k := &kind{name: name, begin: begin, provision: strings.HasPrefix(name, "provision"), sweep: name == "sweep"}
	k.start = &node{kind: k}
	k.start = x.rested(k.start, x.rebuilt(k.start))
	return k
}

// provision asks for request i.
func (x *explorer) provision(i int) *kind {
	ask := x.bounds.Asks[i]
	k := x.newKind("provision "+requestID(i), func(f *fleet.Fleet) op.Stated {
		return must1(f.NewProvision(fleet.Demand{Repository: repository, RunID: ask.Run, RequestID: requestID(i), Spec: lifecycle.Spec{
			Count: ask.Count, MinimumCount: ask.Minimum, ResourceClass: className, Timeout: unit,
		}}))
	})
	k.ask = i
	return k
}

func (x *explorer) release(run string) *kind {
	k := x.newKind("release "+run, func(f *fleet.Fleet) op.Stated { return f.NewRelease(repository, run, 0, false) })
	k.run = run
	return k
}

func (x *explorer) sweep() *kind {
	return x.newKind("sweep", func(f *fleet.Fleet) op.Stated { return f.NewDueSweep() })
}

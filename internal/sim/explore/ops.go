package explore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// op is an operation of a replica. What it keeps in memory cannot be copied,
// so it is rebuilt when it is needed: it is a function of the answers that its
// calls got, and those are written down.
type op struct {
	name  string
	begin func(*fleet.Fleet) fleet.Op
	steps []step
	// open is since which step a closure may hold something of its progress;
	// the answers from there on belong to its state.
	open int
	// built is the operation itself, for the first who steps it on from here.
	built fleet.Op
	ports *ports
	// progress is what of its fingerprint does not depend on the world, as of
	// asOf; versions are the rows it knows, whose age is told by the store's.
	progress print
	versions []version
	asOf     time.Time
}

// version is a row as an operation knows it.
type version struct {
	row string
	n   int64
}

// step is what happened in one step of an operation.
type step struct {
	now     time.Time
	answers []answer
}

type answer struct {
	call  string
	value any
	err   error
}

var background = context.Background()

// rebuilt is the operation as it stands before its next step, with its ports.
func (o *op) rebuilt(s *state) (fleet.Op, *ports) {
	p := &ports{state: s, busy: map[string]bool{}}
	f := must1(fleet.New(fleet.Options{
		Store: p, Queue: queue{p}, Compute: compute{p}, GitHub: github{}, Pools: pools(),
		Classes: map[string]fleet.Class{className: {CPU: 2, MemoryMiB: 4096}},
		Replica: "any", Rand: rand.New(rand.NewPCG(1, 1)),
		Timing: fleet.Timing{Takeover: unit, Relaunch: 100 * unit},
	}))
	built := o.begin(f)
	for _, st := range o.steps {
		p.script, p.replaying = st.answers, true
		_, _ = built.Step(background, st.now)
	}
	p.script, p.replaying = nil, false
	return built, p
}

// take is the operation, ready for its next step in the state.
func (o *op) take(s *state) (fleet.Op, *ports) {
	built, p := o.built, o.ports
	if built == nil {
		return o.rebuilt(s)
	}
	o.built, o.ports = nil, nil
	p.state = s
	return built, p
}

// stepOp makes the next step of the operation in the slot, and those after it
// that call nobody: they change nothing that others see, and see nothing that
// others change.
func (s *state) stepOp(slot int, lose bool) {
	built, p := s.ops[slot].take(s)
	o := op{name: s.ops[slot].name, begin: s.ops[slot].begin, steps: slices.Clip(s.ops[slot].steps), open: s.ops[slot].open}
	p.lose = lose
	for {
		progress, err := built.Step(background, s.now)
		st := step{now: s.now, answers: p.script}
		p.script = nil
		o.steps = append(o.steps, st)
		s.checkStep(o.name, err, p)
		if progress.Done || (err != nil && !errors.Is(err, lifecycle.ErrUnavailable)) {
			s.ops[slot] = nil
			return
		}
		if !holdsClosure(built) {
			o.open = len(o.steps)
		}
		if len(st.answers) > 0 || progress.Wait > 0 {
			break
		}
	}
	o.built, o.ports = built, p
	o.settle(s, built, p)
	s.ops[slot] = &o
}

func (s *state) checkStep(name string, err error, p *ports) {
	var transition *lifecycle.TransitionError
	switch {
	case errors.As(err, &transition):
		s.broken("transition", "%s: %v", name, err)
	case err != nil && !expected(err) && !(errors.Is(err, lifecycle.ErrUnavailable) && p.lost):
		s.broken("unexpected error", "%s: %v", name, err)
	}
}

// settle takes down the operation's own part of the fingerprint: its progress,
// and what the rules remember of it.
func (o *op) settle(s *state, built fleet.Op, p *ports) {
	t := &text{s: s, buf: make([]byte, 0, 1024)}
	t.add(o.name)
	t.value(built)
	t.value(p.named)
	t.value(p.busy)
	for _, st := range o.steps[o.open:] {
		t.answers(st)
	}
	o.progress, o.versions, o.asOf = t.print(), t.versions, s.now
}

// expected are the errors with which use-cases end.
func expected(err error) bool {
	var short *fleet.ShortError
	var released *fleet.ReleasedError
	return errors.As(err, &short) || errors.As(err, &released)
}

func (s *state) start(slot int, name string, begin func(*fleet.Fleet) fleet.Op) {
	o := &op{name: name, begin: begin}
	built, p := o.rebuilt(s)
	o.settle(s, built, p)
	s.ops[slot] = o
}

// provision asks for request i.
func (x *explorer) provision(i int) (string, func(*fleet.Fleet) fleet.Op) {
	ask := x.bounds.Asks[i]
	id := "ask-" + strconv.Itoa(i+1)
	return "provision " + id, func(f *fleet.Fleet) fleet.Op {
		return must1(f.NewProvision(fleet.Demand{Repository: repository, RunID: ask.Run, RequestID: id, Spec: lifecycle.Spec{
			Count: ask.Count, MinimumCount: ask.Minimum, ResourceClass: className, Timeout: unit,
		}}))
	}
}

func release(run string) (string, func(*fleet.Fleet) fleet.Op) {
	return "release " + run, func(f *fleet.Fleet) fleet.Op { return f.NewRelease(repository, run, 0, false) }
}

func sweep() (string, func(*fleet.Fleet) fleet.Op) {
	return "sweep", func(f *fleet.Fleet) fleet.Op { return f.NewDueSweep() }
}

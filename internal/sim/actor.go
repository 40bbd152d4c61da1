package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// process is what a crash ends as a whole: a replica of controld, or the agent of one
// host.
type process struct {
	name  string
	alive bool
	// onCrash is called after the process died; may be nil.
	onCrash func()
	// Fault rates of its port calls.
	crash, preempt, pause Fault
}

// actor is something in a process that makes one step after the other.
type actor struct {
	name string
	proc *process
	// step makes one step and says when to make the next one.
	step func() (next time.Time, over bool)
	// dies is called when the process died under the actor; may be nil.
	dies func()

	on    bool // it is on the stack
	over  bool
	wake  time.Time // when it steps next
	woken bool      // something wanted it to step while it was on the stack

	// stalled is the virtual time that passed within its own port calls.
	stalled time.Duration
	// reads are when it last read a host's report, and its stall then.
	reads   map[string]readMark
	allRead readMark
	// beside is set when it steps an operation that has goroutines of its own. cancel ends
	// a step of it, and fell is the panic that one of them ended with. See makeStep.
	beside bool
	cancel context.CancelFunc
	fell   any
	// counted is when it last counted the jobs of a service.
	counted time.Time
	// holdRead is when it last read the fleet's hold.
	holdRead readMark
	// asked is when it last asked the index for pooled hosts, listed for the
	// hosts of a run.
	asked, listed time.Time
}

type readMark struct {
	at      time.Time
	stalled time.Duration
}

// crashed is the panic that unwinds a step whose process was killed. No code of the process
// may have an effect after it: its ports refuse dead processes.
type crashed struct{ proc *process }

// spawn starts an actor, which steps at once.
func (w *world) spawn(a *actor) {
	a.reads = map[string]readMark{}
	w.wakeAt(a, w.now)
}

// wakeAt makes the actor step at t, and not at the time planned before.
func (w *world) wakeAt(a *actor, t time.Time) {
	if a.on {
		a.woken = true
		return
	}
	if t.Before(w.now) {
		t = w.now
	}
	a.wake = t
	w.at(t, func() {
		if a.wake.Equal(t) && !a.over && !a.on {
			a.wake = time.Time{}
			w.stepActor(a)
		}
	})
}

func (w *world) stepActor(a *actor) {
	if !a.proc.alive {
		w.endActor(a)
		return
	}
	next, over := w.guarded(a)
	switch {
	case !a.proc.alive:
		w.endActor(a)
	case over:
		a.over = true
	case a.woken:
		a.woken = false
		w.wakeAt(a, w.now)
	default:
		w.wakeAt(a, next)
	}
}

// endActor ends an actor whose process died.
func (w *world) endActor(a *actor) {
	if a.over {
		return
	}
	a.over = true
	if a.dies != nil {
		a.dies()
	}
}

// guarded makes a step that a crash may cut short.
func (w *world) guarded(a *actor) (next time.Time, over bool) {
	outer := w.current
	w.current, a.on = a, true
	defer func() {
		w.current, a.on = outer, false
		if r := recover(); r != nil {
			c, ok := r.(crashed)
			if !ok || c.proc != a.proc {
				w.unwind(r)
			}
		}
	}()
	return a.step()
}

// kill ends a process as kill -9 does.
func (w *world) kill(p *process, why string) {
	if !p.alive {
		return
	}
	p.alive = false
	w.tell(p.name, "crash", why)
	if p.onCrash != nil {
		p.onCrash()
	}
}

// protect runs a life until a rule is broken. A panic of the code under test
// breaks one too.
func (w *world) protect(life func()) {
	defer func() {
		if r := recover(); r != nil && w.violation == nil {
			w.violation = &Violation{Rule: RulePanic, What: fmt.Sprintf("%v\n%s", r, debug.Stack()), Trace: w.trace.last()}
		}
	}()
	life()
}

// unwind passes a panic on, with the place where it began.
func (w *world) unwind(r any) {
	if w.violation == nil {
		w.violation = &Violation{Rule: RulePanic, What: fmt.Sprintf("%v\n%s", r, debug.Stack()), Trace: w.trace.last()}
	}
	panic(r)
}

// interrupt is called before and after every port call. Here a process may die, and here
// other actors may act first. It never returns to a dead process.
func (w *world) interrupt(call string) {
	a := w.current
	if w.violation != nil {
		panic(w.violation)
	}
	if !a.proc.alive {
		panic(crashed{a.proc})
	}
	if w.script != nil {
		w.script.interrupt(a, call)
	}
	if !a.proc.alive {
		panic(crashed{a.proc})
	}
	if !w.chaos {
		return
	}
	if w.chance(a.proc.crash) {
		w.kill(a.proc, "at "+call)
		panic(crashed{a.proc})
	}
	if w.depth >= maxDepth {
		return
	}
	switch {
	case w.chance(a.proc.pause):
		w.preempt(a, call, 1<<30, w.exp(time.Minute, 10*time.Minute))
	case w.chance(a.proc.preempt):
		w.preempt(a, call, 1+w.rng.IntN(8), w.exp(2*time.Second, 10*time.Second))
	}
	if !a.proc.alive {
		panic(crashed{a.proc})
	}
}

// maxDepth bounds how many actors are suspended within their calls at once.
const maxDepth = 4

// preempt lets at most n other events happen, for at most d, while the actor
// waits within its call.
func (w *world) preempt(a *actor, call string, n int, d time.Duration) {
	began := w.now
	w.tell(a.name, "suspended", call)
	w.depth++
	until := w.now.Add(d)
	for ; n > 0 && w.next(until); n-- {
	}
	if n > 0 && until.After(w.now) {
		w.now = until
	}
	w.depth--
	a.stalled += w.now.Sub(began)
	w.tell(a.name, "resumed", call)
}

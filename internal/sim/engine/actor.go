package engine

import (
	"context"
	"time"
)

// Process is what a crash ends as a whole: a replica of controld, or the agent of one
// host.
type Process struct {
	Name  string
	Alive bool
	// OnCrash is called after the process died; may be nil.
	OnCrash func()
	// StoreUpSince is since when no call of it to the store has failed; zero: it has made none, or the last one failed.
	StoreUpSince time.Time
	// Fault rates of its port calls.
	Crash, Preempt, Pause Fault
}

// Actor is something in a process that makes one step after the other.
type Actor struct {
	Name string
	Proc *Process
	// Step makes one step and says when to make the next one.
	Step func() (next time.Time, over bool)
	// Dies is called when the process died under the actor; may be nil.
	Dies func()

	// Over is set once it makes no more steps.
	Over  bool
	on    bool      // it is on the stack
	wake  time.Time // when it steps next
	woken bool      // something wanted it to step while it was on the stack

	// stalled is the virtual time that passed within its own port calls.
	stalled time.Duration
	// stood is how long it was suspended last, stoodIn in which call, and resumedAt when it went on.
	stood     time.Duration
	stoodIn   string
	resumedAt time.Time
	// looks are when it last read something.
	looks map[Sight]Look
	// Beside is set when it steps an operation that has goroutines of its own. cancel ends
	// a step of it, and fell is the panic that one of them ended with. See MakeStep.
	Beside bool
	cancel context.CancelFunc
	fell   any
}

// crashed is the panic that unwinds a step whose process was killed. No code of the process
// may have an effect after it: its ports refuse dead processes.
type crashed struct{ proc *Process }

// Spawn starts an actor, which steps at once.
func (e *Engine) Spawn(a *Actor) {
	a.looks = map[Sight]Look{}
	e.WakeAt(a, e.Now)
}

// WakeAt makes the actor step at t, and not at the time planned before.
func (e *Engine) WakeAt(a *Actor, t time.Time) {
	if a.on {
		a.woken = true
		return
	}
	if t.Before(e.Now) {
		t = e.Now
	}
	a.wake = t
	e.plan(event{at: t, actor: a})
}

func (e *Engine) stepActor(a *Actor) {
	if !a.Proc.Alive {
		e.endActor(a)
		return
	}
	next, over := e.guarded(a)
	switch {
	case !a.Proc.Alive:
		e.endActor(a)
	case over:
		a.Over = true
	case a.woken:
		a.woken = false
		e.WakeAt(a, e.Now)
	default:
		e.WakeAt(a, next)
	}
}

// Suspended reports whether the actor waits within a call while others act.
func (a *Actor) Suspended() bool { return a.on }

// endActor ends an actor whose process died.
func (e *Engine) endActor(a *Actor) {
	if a.Over {
		return
	}
	a.Over = true
	if a.Dies != nil {
		a.Dies()
	}
}

// guarded makes a step that a crash may cut short.
func (e *Engine) guarded(a *Actor) (next time.Time, over bool) {
	outer := e.Current
	e.Current, a.on = a, true
	defer func() {
		e.Current, a.on = outer, false
		if r := recover(); r != nil {
			c, ok := r.(crashed)
			if !ok || c.proc != a.Proc {
				e.unwind(r)
			}
		}
	}()
	return a.Step()
}

// Kill ends a process as kill -9 does.
func (e *Engine) Kill(p *Process, why string) {
	if !p.Alive {
		return
	}
	p.Alive = false
	e.Tell(p.Name, "crash", why)
	if p.OnCrash != nil {
		p.OnCrash()
	}
}

// Crash ends the actor's process at a call, and unwinds the actor's step.
func (e *Engine) Crash(a *Actor, call string) {
	e.Kill(a.Proc, "at "+call)
	panic(crashed{a.Proc})
}

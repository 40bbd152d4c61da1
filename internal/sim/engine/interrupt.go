package engine

import "time"

// Interrupt is called before and after every port call. Here a process may die, and here
// other actors may act first. It never returns to a dead process.
func (e *Engine) Interrupt(call string) {
	a := e.Current
	if e.Violation != nil {
		panic(e.Violation)
	}
	if !a.Proc.Alive {
		panic(crashed{a.Proc})
	}
	if e.Director != nil {
		e.Director.Interrupt(a, call)
	}
	if !a.Proc.Alive {
		panic(crashed{a.Proc})
	}
	if !e.Chaos {
		return
	}
	if e.Chance(a.Proc.Crash) {
		e.Crash(a, call)
	}
	if e.depth >= maxDepth {
		return
	}
	switch {
	case e.Chance(a.Proc.Pause):
		e.Preempt(a, call, 1<<30, e.Exp(time.Minute, 10*time.Minute))
	case e.Chance(a.Proc.Preempt):
		e.Preempt(a, call, 1+e.Rand.IntN(8), e.Exp(2*time.Second, 10*time.Second))
	}
	if !a.Proc.Alive {
		panic(crashed{a.Proc})
	}
}

// maxDepth bounds how many actors are suspended within their calls at once.
const maxDepth = 4

// Preempt lets at most n other events happen, for at most d, while the actor
// waits within its call.
func (e *Engine) Preempt(a *Actor, call string, n int, d time.Duration) {
	began := e.Now
	e.Tell(a.Name, "suspended", call)
	e.depth++
	until := e.Now.Add(d)
	for ; n > 0 && e.Next(until); n-- {
	}
	if n > 0 && until.After(e.Now) {
		e.Now = until
	}
	e.depth--
	a.stood, a.stoodIn, a.resumedAt = e.Now.Sub(began), call, e.Now
	a.stalled += a.stood
	e.Tell(a.Name, "resumed", call)
}

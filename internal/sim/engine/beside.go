package engine

import (
	"context"
	"runtime"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
)

// MakeStep makes a step of an operation. One that is beside asks some of its
// questions on goroutines of its own, and waits for each of them, so that still only
// one runs at a time; but a panic there, by which a crash or a broken rule ends a
// step, must come out here.
func (e *Engine) MakeStep(a *Actor, o op.Op, now time.Time) (p op.Progress, err error) {
	if !a.Beside {
		return o.Step(Background, now)
	}
	ctx, cancel := context.WithCancel(Background)
	defer cancel()
	a.cancel, a.fell = cancel, nil
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer e.Fall(a)
		p, err = o.Step(ctx, now)
	}()
	<-over
	if a.fell != nil {
		panic(a.fell)
	}
	return p, err
}

// Fall is deferred where an actor with goroutines of its own may panic: it ends
// the goroutine and has the step end.
func (e *Engine) Fall(a *Actor) {
	if a == nil || !a.Beside {
		return
	}
	if r := recover(); r != nil {
		a.fell = r
		a.cancel()
		runtime.Goexit()
	}
}

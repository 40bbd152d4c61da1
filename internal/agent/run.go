package agent

import (
	"context"
	"time"
)

// Waker tells Run when a step is worth making before it is due, and is called after every step.
type Waker struct {
	// Changed receives a value when something on the host may have changed. It may
	// be nil; then changes are noticed within a second.
	Changed <-chan struct{}
	// Stepped is called after every step, for a watchdog: it shows that the
	// agent's own loop advances. It may be nil.
	Stepped func(at time.Time)
	// Status is called with the status line (see Status) after a step that changed it. It may be nil.
	Status func(line string)
}

// Run makes steps until the host is powered off, and returns nil, or until ctx is done, and returns its
// error. The runner is left alone in either case: a restarted agent finds it again.
func (a *Agent) Run(ctx context.Context, w Waker) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-w.Changed:
		}
		// Two cases may have been ready at once. Nothing is begun once ctx is done.
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		next, over := a.Step(ctx, now)
		if w.Status != nil {
			if line := a.Status(now); line != said {
				said = line
				w.Status(line)
			}
		}
		if w.Stepped != nil {
			w.Stepped(now)
		}
		if over {
			return nil
		}
		timer.Reset(time.Until(next))
	}
}

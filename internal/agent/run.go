package agent

import (
	"context"
	"time"
)

// Waker says when a step is worth making before it is due, and hears of every
// step that was made.
type Waker struct {
	// Changed receives when something on the host may have changed. It may be
	// nil; then changes are seen within a second.
	Changed <-chan struct{}
	// Stepped is called after every step: a watchdog feeds on it, since it
	// shows that the agent's own loop advances. It may be nil.
	Stepped func(at time.Time)
	// Status is called with the status line (see Status) after a step that
	// changed it. It may be nil.
	Status func(line string)
}

// Run makes steps until the host is powered off (it returns nil) or ctx is
// done (its error). The runner is left alone in either case: a restarted agent
// finds it again.
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
		// Both may have come: then nothing is begun any more.
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

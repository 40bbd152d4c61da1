package sim

import (
	"fmt"
	"time"
)

// Config is what one simulation is made of. Zero fields take their defaults.
type Config struct {
	Seed uint64
	// Hosts is about how many machines live at once; default 6.
	Hosts int
	// Chaos is how long faults and new runs go on; default 20 minutes of
	// virtual time. Afterwards everything must settle.
	Chaos time.Duration
	// Log adds the log lines of the daemons to the trace, which costs time.
	Log bool
	// Keep is how many events the trace of a violation shows; default 200.
	Keep int
}

func (c Config) withDefaults() Config {
	if c.Hosts <= 0 {
		c.Hosts = 6
	}
	if c.Chaos <= 0 {
		c.Chaos = 20 * time.Minute
	}
	if c.Keep <= 0 {
		c.Keep = 200
	}
	return c
}

// Result is what came of one simulation.
type Result struct {
	Seed uint64
	// Events counts what happened, Calls the port calls among it.
	Events, Calls int
	// Virtual is how much time passed in the world.
	Virtual time.Duration
	// Hash is of the whole trace: equal hashes are equal lives.
	Hash uint64
	// Coverage counts what was really exercised.
	Coverage Coverage
	// Violation is the first broken rule; nil when all held.
	Violation *Violation
}

// Violation is a rule that was broken.
type Violation struct {
	Rule Rule
	What string
	// Trace is the end of what happened before.
	Trace []string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s", v.Rule, v.What) }

// Run lives one life, from its seed alone.
func Run(c Config) (result Result) {
	w := newWorld(c.withDefaults())
	defer func() {
		result = Result{
			Seed: c.Seed, Events: w.events, Calls: w.calls, Virtual: w.now.Sub(epoch),
			Hash: w.trace.hash, Coverage: w.coverage, Violation: w.violation,
		}
	}()
	w.protect(func() {
		w.begin()
		w.runUntil(epoch.Add(w.cfg.Chaos))
		w.endChaos()
		w.settle()
	})
	return result
}

package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// What a caller of Run configures, counts and gets.
type (
	Config    = engine.Config
	Coverage  = engine.Coverage
	Violation = engine.Violation
)

// NewCoverage returns a coverage of nothing, to add to.
func NewCoverage() Coverage { return engine.NewCoverage() }

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

// Run lives one life, from its seed alone.
func Run(c Config) (result Result) {
	l := newLife(c.WithDefaults())
	defer func() {
		result = Result{
			Seed: c.Seed, Events: l.Events, Calls: l.Calls, Virtual: l.Now.Sub(engine.Epoch),
			Hash: l.Hash(), Coverage: l.Coverage, Violation: l.Violation,
		}
	}()
	l.Protect(func() {
		l.begin()
		l.RunUntil(engine.Epoch.Add(l.Config.Chaos))
		l.work()
		l.endChaos()
		l.settle()
	})
	return result
}

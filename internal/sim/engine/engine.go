package engine

import (
	"context"
	"math/rand/v2"
	"time"
)

// Engine is the time, the chance and the actors of one life.
type Engine struct {
	Config Config
	Rand   *rand.Rand

	Now   time.Time
	heap  eventHeap
	seq   uint64
	depth int // of suspended actors

	// Current is the actor whose step is made now; nil between steps.
	Current *Actor
	// Chaos is set while faults strike. odds are how often, as factors of their usual rates, and
	// chances those of the faults of single calls, 0 to 1: the products of both. Storms is set while those strike, too, that come at random times.
	Chaos   bool
	Storms  bool
	odds    map[Fault]float64
	chances map[Fault]float64
	// Director is set in a story, which has no chance; nil in all other lives.
	Director Director

	trace    *trace
	Coverage Coverage
	// Violation is the first broken rule; nil: none is broken.
	Violation *Violation
	// Events counts what happened, Calls the calls of ports.
	Events, Calls int
}

// Director directs a story: only the faults strike that it has ordered, and every other draw
// takes the middle of its range.
type Director interface {
	// Event is called with each event of the trace.
	Event(who, what, more string)
	// Strikes reports whether a fault strikes now.
	Strikes(f Fault) bool
	// Interrupt is called before and after each call of a port. It may kill or suspend the actor.
	Interrupt(a *Actor, call string)
}

// New returns an engine at the beginning of a life.
func New(c Config) *Engine {
	e := &Engine{
		Config: c, Rand: rand.New(rand.NewPCG(c.Seed, 0x72656d756461)), Now: Epoch, Chaos: true, Storms: true,
		trace: newTrace(c.Keep), Coverage: NewCoverage(),
	}
	e.drawFaultRates()
	return e
}

// Epoch is when every life begins.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Must is for calls that cannot fail: a fault of the simulator itself.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Must1 is Must for a call that returns a value.
func Must1[T any](v T, err error) T {
	Must(err)
	return v
}

// Background is the context of every call: no real timer decides anything.
var Background context.Context = untimed{context.Background()}

// untimed is a context that never ends. Its deadline is the zero time, so
// that a context with a timeout that is derived from it starts no real timer: that of its parent
// is earlier.
type untimed struct{ context.Context }

func (untimed) Deadline() (time.Time, bool) { return time.Time{}, true }

// Random is the source of what is random in a process. A story has none.
func (e *Engine) Random(stream uint64) *rand.Rand {
	if e.Director != nil {
		return rand.New(steady{})
	}
	return rand.New(rand.NewPCG(e.Rand.Uint64(), stream))
}

// Clock returns the time in the world.
func (e *Engine) Clock() time.Time { return e.Now }

// steady is a source without chance: it always gives the middle of its range. Its low bits
// are those that make the rejection sampling of math/rand/v2 end.
type steady struct{}

func (steady) Uint64() uint64 { return 1<<63 | 1<<52 | 1<<32 | 1 }

// Package explore visits every interleaving of a small fleet: the real
// use-cases of internal/fleet, driven by two replicas over a world of a few
// rows that keep the store's conditions (TestRows), with every choice that this
// world has tried in every order. What the simulator finds by chance in large
// lives is here shown to be absent from small ones.
//
// Time is reduced to whether a threshold has passed: all durations are one
// unit, and the clock stands still until the choice is made that a unit
// passes. The agent is reduced to its contract: it reads its record, and later
// writes its answer to what it read. States are told apart by all on which
// decisions depend, the progress of every operation included, and each is
// visited once. The bounds are declared; nothing is cut off silently.
//
// Two things keep the states few and their visits cheap:
//
//   - A step that only reads is put together with the next write of its
//     operation, or made just before somebody else's move after which it would
//     come to something else (see expand). Whether it would is not estimated from
//     what is read but found out: the step is tried in both worlds. TestLateReads
//     explores with and without this, and compares everything that was done.
//   - What an operation's step does depends on the rows that it looked at and
//     nothing else. It is tried once and then known (see node).
//
// What is covered: with the bounds "everything", two replicas, two requests and
// two hosts in the pool; a release of either run; sweeps one after the other,
// on either replica; a crash of either replica with all that runs on it; and a
// unit of time that passes. All of these come at any time and in any order,
// until a host has had three assignments. The other bounds have less of this,
// and beside it two sweeps at once, two releases, launches, failed
// registrations, lost answers, jobs, callers that ask twice, or more time.
//
// What is not covered: all of these things together in one life. Silence,
// interruptions, holds, orders, the sweeps of the cloud and of GitHub, old reads
// of the indexes and failures of GitHub are left to the simulator. Each replica
// has one caller's operation and one sweep at a time. A sweep starts only while
// something is due, but where the bounds let it start idle. The replicas share
// one clock. An agent is silent once its record has ended.
package explore

import (
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/fleet"
)

// Bounds say how large a fleet is explored, and how often each thing may
// happen to it.
type Bounds struct {
	Name string
	// Pooled hosts wait in the pool at the start, the first Unsent of them
	// without a message in the queue.
	Pooled, Unsent int
	// Capacity is how many machines may be launched in all.
	Capacity int
	// Asks are the requests, each made once and then Retries times again by
	// callers that do not know of each other.
	Asks    []Ask
	Retries int
	// Releases is how often runs are released.
	Releases int
	// Crashes, Lost and Failures are how often a replica crashes, the answer of
	// a write is lost, and a registration fails by the host's own fault.
	Crashes, Lost, Failures int
	// Jobs is how many jobs begin.
	Jobs int
	// Passes is how often all thresholds pass.
	Passes int
	// Sweeps is how many due sweeps run at once. They start only while something
	// is due; with Idle at any time.
	Sweeps int
	Idle   bool
	// Assignments is how many a host has at most, from its start; what lies
	// beyond is not visited.
	Assignments int64
}

// Ask is one request: of a run, for so many hosts, of which a minimum must come.
type Ask struct {
	Run            string
	Count, Minimum int
}

// Report is what an exploration covered.
type Report struct {
	// States were visited, Edges taken between them; Settled counts the states
	// from which everything
	// was shown to settle after both replicas crashed.
	States, Edges, Settled int
	// Beyond counts the states at the declared bound of assignments, whose
	// successors were not visited.
	Beyond int
	// Choices counts how often each kind of choice was taken.
	Choices map[string]int
	// Truncated is set when the exploration was given up at its limit of
	// states: then nothing is proven.
	Truncated bool
	// Violation is the first broken rule, with the way there; nil if none.
	Violation *Violation
}

// Violation is a broken rule, and the choices that lead to it.
type Violation struct {
	Rule, What string
	Path       []string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s\n  %s", v.Rule, v.What, strings.Join(v.Path, "\n  "))
}

// Explore visits all states within the bounds, and at most limit (0: no limit).
// Now and then it tells how far it is, unless tell is nil.
func Explore(b Bounds, limit int, tell func(Report)) Report {
	x := newExplorer(b, limit)
	x.tell = tell
	x.run()
	return x.report
}

// tellEvery is after how many states the explorer tells how far it is: some
// seconds.
const tellEvery = 500_000

type explorer struct {
	bounds Bounds
	most   used // by the bounds
	limit  int
	report Report
	tell   func(Report)

	ports  *ports
	fleet  *fleet.Fleet
	values *values
	nodes  map[string]*node
	read   map[[3]id][2]id
	// kinds are the operations that may be started; sweeps is the last.
	kinds  []*kind
	sweeps *kind

	seen    map[print]struct{}
	settled map[print]bool // worlds that are known to settle
	stack   []*state
	early   []early
	been    []*node // where an operation was before in overtaken
	room    [3][]byte

	// at is the state that is expanded; kind and what say what is tried there.
	at         *state
	kind, what string

	// plainly: nothing is left out; deeds collects what others see. Both are
	// for measuring one way of exploring against the other.
	plainly bool
	deeds   map[string]bool
	texts   map[world]string
}

func newExplorer(b Bounds, limit int) *explorer {
	x := &explorer{
		bounds: b, limit: limit, seen: map[print]struct{}{}, settled: map[print]bool{}, read: map[[3]id][2]id{},
		values: newValues(), nodes: map[string]*node{}, report: Report{Choices: map[string]int{}},
	}
	x.ports = &ports{x: x}
	x.fleet = newFleet(x.ports)
	runs := map[string]bool{}
	for i, ask := range b.Asks {
		x.kinds = append(x.kinds, x.provision(i))
		if !runs[ask.Run] {
			runs[ask.Run] = true
			x.kinds = append(x.kinds, x.release(ask.Run))
		}
	}
	x.sweeps = x.sweep()
	x.most = used{
		releases: uint8(b.Releases), crashes: uint8(b.Crashes), lost: uint8(b.Lost),
		failures: uint8(b.Failures), jobs: uint8(b.Jobs), passes: uint8(b.Passes),
	}
	for i := range b.Asks {
		x.most.asked[i] = uint8(b.Retries + 1)
	}
	x.kinds = append(x.kinds, x.sweeps)
	return x
}

// run is a depth-first search: the stack stays small.
func (x *explorer) run() {
	defer func() {
		if v, ok := recover().(*Violation); ok {
			v.Path = append(x.at.path(), x.kind+" "+x.what)
			x.report.Violation = v
		} else if r := recover(); r != nil {
			panic(r)
		}
	}()
	first := x.initial()
	x.at = first
	x.visit(nil, *first)
	for len(x.stack) > 0 && !x.report.Truncated {
		x.at = x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		if x.beyond(x.at) {
			x.report.Beyond++
			continue
		}
		if x.plainly {
			x.expandPlainly(x.at)
		} else {
			x.expand(x.at)
		}
	}
}

// doing notes what is tried.
func (x *explorer) doing(kind, what string) { x.kind, x.what = kind, what }

// visit takes a state up, unless it was visited before.
func (x *explorer) visit(from *state, s state) {
	x.report.Edges++
	if x.deeds != nil && from != nil && x.kind != "crash" {
		if before, after := x.shown(from.world), x.shown(s.world); before != after {
			x.deeds[x.what+": "+before+" => "+after] = true
		}
	}
	fp := x.print(&s)
	if _, ok := x.seen[fp]; ok {
		return
	}
	if x.limit > 0 && x.report.States >= x.limit {
		x.report.Truncated = true
		return
	}
	x.seen[fp] = struct{}{}
	if x.report.States++; x.tell != nil && x.report.States%tellEvery == 0 {
		x.tell(x.report)
	}
	x.checkSettles(s.world)
	kept := new(state) // s itself stays off the heap: most states were visited before
	*kept = s
	kept.parent, kept.kind, kept.what = from, x.kind, x.what
	x.stack = append(x.stack, kept)
}

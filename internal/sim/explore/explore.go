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
	// Hot: clean hosts register ahead of need, and those that wait at the start have done so.
	Hot bool
	// Resets: hosts get a new root volume between two runs. The cloud replaces it at once, and forgets nothing.
	Resets bool
	// Stops: a host whose idle time is over is stopped. The cloud stops and starts machines at once.
	Stops bool
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
	// Drains is how many hosts an operator drains, and Pauses how often an operator pauses the pool. The pool may be resumed each time.
	// With pauses there must be machines enough: a request that is short of them would look again without end.
	Drains, Pauses int
	// Sweeps is how many due sweeps run at once. They start only while something
	// is due; with Idle at any time.
	Sweeps int
	Idle   bool
	// Assignments is how many a host has at most, from its start; what lies
	// beyond is not visited.
	Assignments int64
}

// Ask is one request of a run for a number of hosts and a minimum.
type Ask struct {
	Run            string
	Count, Minimum int
}

// Report is what an exploration covered.
type Report struct {
	// States were visited, and Edges taken between them. Settled counts the states
	// from which everything was shown to settle after both replicas crashed.
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
// It calls tell with its progress from time to time, unless tell is nil.
func Explore(b Bounds, limit int, tell func(Report)) Report {
	x := newExplorer(b, limit)
	x.tell = tell
	x.run()
	return x.report
}

// tellEvery is the number of states between two calls of tell: some seconds.
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
	read   map[[4]id][2]id
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

	// plainly leaves out nothing; effects collects every change that others see.
	// Both are for comparing one way of exploring with the other.
	plainly bool
	effects map[string]bool
	texts   map[world]string
}

func newExplorer(b Bounds, limit int) *explorer {
	x := &explorer{
		bounds: b, limit: limit, seen: map[print]struct{}{}, settled: map[print]bool{}, read: map[[4]id][2]id{},
		values: newValues(), nodes: map[string]*node{}, report: Report{Choices: map[string]int{}},
	}
	x.ports = &ports{x: x}
	x.fleet = newFleet(x.ports, b)
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
		failures: uint8(b.Failures), jobs: uint8(b.Jobs), passes: uint8(b.Passes), drains: uint8(b.Drains), pauses: uint8(b.Pauses),
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

// doing notes which choice is tried.
func (x *explorer) doing(kind, what string) { x.kind, x.what = kind, what }

// visit puts a state on the stack, unless it was visited before.
func (x *explorer) visit(from *state, s state) {
	x.report.Edges++
	if x.effects != nil && from != nil && x.kind != "crash" {
		if before, after := x.shown(from.world), x.shown(s.world); before != after {
			x.effects[x.what+": "+before+" => "+after] = true
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

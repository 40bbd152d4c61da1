// Package explore visits every interleaving of a small fleet: the real
// use-cases of internal/fleet, driven by two replicas over the real store in
// memory, with every choice that the world has tried in every order. What the
// simulator finds by chance in large lives is here shown to be absent from
// small ones.
//
// Time is reduced to whether a threshold has passed: all durations are one
// unit, and the clock stands still until the choice is made that a unit
// passes. The agent is reduced to its contract: it reads its record, and later
// writes its answer to what it read. States are told apart by all on which
// decisions depend, the progress of every operation included, and each is
// visited once. The bounds are declared; nothing is cut off silently.
package explore

import (
	"fmt"
	"strings"
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
	// Sweeps is how many due sweeps run at once.
	Sweeps int
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
func Explore(b Bounds, limit int) Report {
	x := &explorer{
		bounds: b, limit: limit, seen: map[print]bool{}, settled: map[print]bool{},
		report: Report{Choices: map[string]int{}},
	}
	x.run()
	return x.report
}

type explorer struct {
	bounds  Bounds
	limit   int
	seen    map[print]bool
	settled map[print]bool // worlds that are known to settle
	report  Report
	stack   []*state
}

// run is a depth-first search: the stack stays small, and a state is expanded
// once all its choices are known.
func (x *explorer) run() {
	defer func() {
		if v, ok := recover().(*Violation); ok {
			x.report.Violation = v
		} else if r := recover(); r != nil {
			panic(r)
		}
	}()
	x.visit(x.initial())
	for len(x.stack) > 0 {
		s := x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		if x.beyond(s) {
			x.report.Beyond++
			continue
		}
		for _, c := range x.choices(s) {
			if x.limit > 0 && x.report.States >= x.limit {
				x.report.Truncated = true
				return
			}
			x.report.Edges++
			x.report.Choices[c.kind]++
			n := s.branch(c)
			c.do(n)
			x.visit(n)
		}
	}
}

func (x *explorer) visit(s *state) {
	fp := s.fingerprint(true)
	if x.seen[fp] {
		return
	}
	x.seen[fp] = true
	x.report.States++
	x.checkSettles(s)
	x.stack = append(x.stack, s)
}

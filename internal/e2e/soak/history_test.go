package soak_test

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is what an operation of a history does to one host.
type kind int

const (
	claimed  kind = iota // a run got the host
	released             // the run gave it back
	ended                // its record became that of an ended host
	observed             // the host read its record
)

// operation is the input of one, for the host of its partition. A read is an operation as well: what it found is in the same fields.
type operation struct {
	kind       kind
	host       string
	run        string // observed: "" if no run had the host
	assignment int64
}

// register is the state of one host, as a model that knows nothing of pools, launches and sweeps: it is free or one run has it, and each claim has a
// higher number.
type register struct {
	run        string
	assignment int64
	ended      bool
}

// step is the whole specification of claims.
func (r register) step(o operation) (bool, register) {
	switch o.kind {
	case claimed:
		return !r.ended && r.run == "" && o.assignment > r.assignment, register{run: o.run, assignment: o.assignment}
	case released: // of an ended host: there is nothing left to give back
		if r.ended {
			return true, r
		}
		return r.has(o), register{assignment: r.assignment}
	case ended:
		return !r.ended, register{assignment: r.assignment, ended: true}
	case observed:
		return !r.ended && (r.has(o) || o.run == "" && r.run == "" && o.assignment >= r.assignment), r
	}
	return false, r
}

func (r register) has(o operation) bool {
	return o.run != "" && r.run == o.run && r.assignment == o.assignment
}

// model is of one host: a history is checked host by host.
var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, _ any) (bool, any) { return state.(register).step(input.(operation)) },
}

// span is a time from a call to its return, both since the history began.
type span struct{ call, back time.Duration }

// pending is the return of a call that never returned.
const pending = time.Duration(math.MaxInt64)

// tenure is one run's time with a host.
type tenure struct {
	host, run  string
	assignment int64
}

// history is what callers and hosts saw. It is safe for concurrent use.
type history struct {
	began time.Time

	mu       sync.Mutex
	claims   map[tenure]span     // as callers were answered
	releases map[tenure]span     // of those claims
	asked    map[string]span     // by run: from its first Provision to the return of its Release
	reads    map[string][]read   // by host, in order
	ends     map[string]span     // by host
	seen     map[tenure]struct{} // by hosts
}

// read is what a host found in its record.
type read struct {
	span
	run        string
	assignment int64
}

func newHistory() *history {
	return &history{
		began: time.Now(), claims: map[tenure]span{}, releases: map[tenure]span{}, asked: map[string]span{},
		reads: map[string][]read{}, ends: map[string]span{}, seen: map[tenure]struct{}{},
	}
}

// keepReads is how often a read is kept that found what the one before found. Every change is kept, with the last read before it.
const keepReads = 2 * time.Second

// sees notes a read of a host's record.
func (h *history) sees(host string, r read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.run != "" {
		h.seen[tenure{host, r.run, r.assignment}] = struct{}{}
	}
	list := h.reads[host]
	if n := len(list); n >= 2 && list[n-1].same(r) && list[n-2].same(r) && r.call-list[n-2].call < keepReads {
		list[n-1] = r // the last one before a change
		return
	}
	h.reads[host] = append(list, r)
}

func (r read) same(other read) bool { return r.run == other.run && r.assignment == other.assignment }

// operations are those of each host.
func (h *history) operations() map[string][]porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]porcupine.Operation{}
	add := func(s span, o operation) {
		all[o.host] = append(all[o.host], porcupine.Operation{Input: o, Call: int64(s.call), Return: int64(s.back)})
	}
	of := func(k kind, t tenure) operation { return operation{k, t.host, t.run, t.assignment} }
	for t, s := range h.claims {
		add(s, of(claimed, t))
		back, known := h.releases[t]
		if !known {
			back = span{call: s.call, back: pending}
		}
		add(back, of(released, t))
	}
	for t := range h.seen { // claims that no answer spoke of: of a request that failed, or that gave the host up by itself
		if _, known := h.claims[t]; !known {
			s := span{call: h.asked[t.run].call, back: pending}
			add(s, of(claimed, t))
			add(s, of(released, t))
		}
	}
	for host, list := range h.reads {
		for _, r := range list {
			add(r.span, operation{observed, host, r.run, r.assignment})
		}
	}
	for host, s := range h.ends {
		add(s, operation{kind: ended, host: host})
	}
	return all
}

// verdict is what porcupine says.
type verdict struct {
	hosts, operations int
	claims, unknown   int // those that callers were answered with, and those that hosts alone saw
	wrong             []string
	undecided         []string
}

// checkWithin bounds the check of one host. Hundreds of claims take milliseconds.
const checkWithin = time.Minute

// check asks porcupine about each host.
func (h *history) check() verdict {
	all := h.operations()
	v := verdict{hosts: len(all), claims: len(h.claims)}
	for t := range h.seen {
		if _, known := h.claims[t]; !known {
			v.unknown++
		}
	}
	for host, operations := range all {
		v.operations += len(operations)
		switch porcupine.CheckOperationsTimeout(model, operations, checkWithin) {
		case porcupine.Illegal:
			v.wrong = append(v.wrong, host)
		case porcupine.Unknown:
			v.undecided = append(v.undecided, host)
		}
	}
	return v
}

func (v verdict) String() string {
	switch {
	case len(v.wrong) > 0:
		return "not linearizable"
	case len(v.undecided) > 0:
		return "undecided"
	case v.claims == 0:
		return "nothing to check"
	}
	return "linearizable"
}

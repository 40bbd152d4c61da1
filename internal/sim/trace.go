package sim

import (
	"fmt"
	"time"
)

// entry is one event of a trace.
type entry struct {
	at              time.Duration
	who, what, more string
}

func (e entry) String() string {
	return fmt.Sprintf("%12s  %-14s %s %s", e.at.Truncate(time.Millisecond), e.who, e.what, e.more)
}

// trace keeps the last events of a life, and a hash of them all.
type trace struct {
	ring []entry
	n    int
	hash uint64
}

func newTrace(keep int) *trace {
	return &trace{ring: make([]entry, keep), hash: fnvOffset}
}

// FNV-1a is enough: the hash only has to tell two lives apart.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (t *trace) add(e entry) {
	t.ring[t.n%len(t.ring)] = e
	t.n++
	h := t.hash
	for i := range 8 {
		h = (h ^ uint64(e.at>>(8*i))&0xff) * fnvPrime
	}
	for _, s := range [...]string{e.who, e.what, e.more} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * fnvPrime
		}
		h = (h ^ 0xff) * fnvPrime
	}
	t.hash = h
}

// last returns the events that are kept, oldest first.
func (t *trace) last() []string {
	var lines []string
	for i := max(0, t.n-len(t.ring)); i < t.n; i++ {
		lines = append(lines, t.ring[i%len(t.ring)].String())
	}
	return lines
}

// tell adds an event to the trace.
func (w *world) tell(who, what, more string) {
	w.trace.add(entry{at: w.now.Sub(epoch), who: who, what: what, more: more})
	w.script.event(who, what, more)
}

// who is the name of the actor that acts now.
func (w *world) who() string {
	if w.current == nil {
		return "world"
	}
	return w.current.name
}

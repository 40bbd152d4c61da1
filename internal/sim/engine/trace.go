package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
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

// Hash is of all events of the trace.
func (e *Engine) Hash() uint64 { return e.trace.hash }

// last returns the events that are kept, oldest first.
func (t *trace) last() []string {
	var lines []string
	for i := max(0, t.n-len(t.ring)); i < t.n; i++ {
		lines = append(lines, t.ring[i%len(t.ring)].String())
	}
	return lines
}

// Tell adds an event to the trace.
func (e *Engine) Tell(who, what, more string) {
	e.trace.add(entry{at: e.Now.Sub(Epoch), who: who, what: what, more: more})
	if e.Director != nil {
		e.Director.Event(who, what, more)
	}
}

// Who is the name of the actor that acts now.
func (e *Engine) Who() string {
	if e.Current == nil {
		return "world"
	}
	return e.Current.Name
}

// Logger writes what a daemon logs into the trace, if Config.Log is set.
func (e *Engine) Logger(name string) hclog.Logger {
	if !e.Config.Log {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: name, Level: hclog.Debug, DisableTime: true, Output: logWriter{e, name},
	})
}

type logWriter struct {
	e    *Engine
	name string
}

func (l logWriter) Write(p []byte) (int, error) {
	l.e.Tell(l.name, "log", strings.TrimSpace(string(p)))
	return len(p), nil
}

// Short is the beginning of an id, for a line of the trace.
func Short(id string) string {
	if len(id) > 6 {
		return id[:6]
	}
	return id
}

// SinceEpoch is a time as a line of the trace shows it.
func SinceEpoch(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(Epoch).Truncate(time.Millisecond).String()
}

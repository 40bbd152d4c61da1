package store

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// straggle is how much older an event may be than when it was written: an operation writes what it has to tell when it comes to rest.
const straggle = 10 * time.Minute

// Newest collects the newest events of a host or of the fleet while their history is read backwards, the event first that was written last.
type Newest struct {
	// Since and Until bound the times of the events; an Until of zero does not.
	Since, Until time.Time
	// Limit is how many events are wanted.
	Limit int

	events []lifecycle.Event
	oldest time.Time // of the first ones of events, one more than Limit
}

// AllWritten is when all events of a time and before it were written.
func AllWritten(at time.Time) time.Time { return at.Add(straggle) }

// Add takes the next event.
func (n *Newest) Add(e lifecycle.Event) {
	if e.At.Before(n.Since) || !n.Until.IsZero() && !e.At.Before(n.Until) {
		return
	}
	if len(n.events) == 0 || len(n.events) <= n.Limit && e.At.Before(n.oldest) {
		n.oldest = e.At
	}
	n.events = append(n.events, e)
}

// Done reports whether an event at a time was written before all that are still wanted.
func (n *Newest) Done(at time.Time) bool {
	early := n.Since
	if len(n.events) > n.Limit {
		early = n.oldest
	}
	return AllWritten(at).Before(early)
}

// History has at most Limit of the events, by time. No other one from its From on is missing.
func (n *Newest) History() lifecycle.HostHistory {
	h := lifecycle.HostHistory{Events: n.events}
	slices.Reverse(h.Events)
	slices.SortStableFunc(h.Events, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) })
	if extra := len(h.Events) - n.Limit; extra > 0 {
		h.Events = h.Events[extra:]
		h.From = h.Events[0].At
	}
	return h
}

package engine

import "time"

// event is something that happens at its time. Events of one time happen in
// the order in which they were planned.
type event struct {
	at  time.Time
	seq uint64
	do  func()
	// actor steps at the time, unless it is planned for another one by then; nil for other events.
	actor *Actor
}

func (e *event) before(o *event) bool {
	if e.at.Equal(o.at) {
		return e.seq < o.seq
	}
	return e.at.Before(o.at)
}

// eventHeap is a binary heap. It does what container/heap does, which would
// allocate memory for each event.
type eventHeap []event

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	*h = s
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// pop removes the first event.
func (h *eventHeap) pop() event {
	s := *h
	first, last := s[0], len(s)-1
	s[0], s[last] = s[last], event{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s[child].before(&s[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// At plans an event; one in the past happens now.
func (e *Engine) At(t time.Time, do func()) { e.plan(event{at: t, do: do}) }

func (e *Engine) plan(v event) {
	if v.at.Before(e.Now) {
		v.at = e.Now
	}
	e.seq++
	v.seq = e.seq
	e.heap.push(v)
}

// After plans an event that is d from now.
func (e *Engine) After(d time.Duration, do func()) { e.At(e.Now.Add(d), do) }

// Next lets the next event happen, unless it is later than the limit.
func (e *Engine) Next(limit time.Time) bool {
	if len(e.heap) == 0 || e.heap[0].at.After(limit) {
		return false
	}
	first := e.heap.pop()
	if first.at.After(e.Now) {
		e.Now = first.at
	}
	e.Events++
	if a := first.actor; a == nil {
		first.do()
	} else if a.wake.Equal(first.at) && !a.Over && !a.on {
		a.wake = time.Time{}
		e.stepActor(a)
	}
	return true
}

// RunUntil lets everything happen until t.
func (e *Engine) RunUntil(t time.Time) {
	for e.Next(t) {
	}
	if t.After(e.Now) {
		e.Now = t
	}
}

package replay

import (
	"container/heap"
	"time"
)

// clock is the virtual time and what is to be done in it.
type clock struct {
	now    time.Time
	events events
	last   int64 // the number of the newest event: those of one time are done in their order
}

type event struct {
	at     time.Time
	number int64
	do     func()
}

// at has something done at a time, or now if that is over, after what is to be done then already.
func (c *clock) at(at time.Time, do func()) {
	if at.Before(c.now) {
		at = c.now
	}
	c.last++
	heap.Push(&c.events, event{at, c.last, do})
}

func (c *clock) after(wait time.Duration, do func()) { c.at(c.now.Add(wait), do) }

// step does what is next. It reports whether there was something.
func (c *clock) step() bool {
	if len(c.events) == 0 {
		return false
	}
	next := heap.Pop(&c.events).(event)
	c.now = next.at
	next.do()
	return true
}

// events are a heap.
type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].number < e[j].number
	}
	return e[i].at.Before(e[j].at)
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}

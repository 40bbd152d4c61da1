package engine

import (
	"container/heap"
	"time"
)

// event is something that happens at its time. Events of one time happen in
// the order in which they were planned.
type event struct {
	at  time.Time
	seq uint64
	do  func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return last
}

// At plans an event; one in the past happens now.
func (e *Engine) At(t time.Time, do func()) {
	if t.Before(e.Now) {
		t = e.Now
	}
	e.seq++
	heap.Push(&e.heap, event{at: t, seq: e.seq, do: do})
}

// After plans an event that is d from now.
func (e *Engine) After(d time.Duration, do func()) { e.At(e.Now.Add(d), do) }

// Next lets the next event happen, unless it is later than the limit.
func (e *Engine) Next(limit time.Time) bool {
	if len(e.heap) == 0 || e.heap[0].at.After(limit) {
		return false
	}
	first := heap.Pop(&e.heap).(event)
	if first.at.After(e.Now) {
		e.Now = first.at
	}
	e.Events++
	first.do()
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

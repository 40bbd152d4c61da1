package sim

import (
	"container/heap"
	"time"
)

// epoch is when every life begins.
var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

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
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return last
}

// at plans an event; one in the past happens now.
func (w *world) at(t time.Time, do func()) {
	if t.Before(w.now) {
		t = w.now
	}
	w.seq++
	heap.Push(&w.heap, event{at: t, seq: w.seq, do: do})
}

// after plans an event that is d from now.
func (w *world) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

// next lets the next event happen, unless it is later than the limit.
func (w *world) next(limit time.Time) bool {
	if len(w.heap) == 0 || w.heap[0].at.After(limit) {
		return false
	}
	e := heap.Pop(&w.heap).(event)
	if e.at.After(w.now) {
		w.now = e.at
	}
	w.events++
	e.do()
	return true
}

// runUntil lets everything happen until t.
func (w *world) runUntil(t time.Time) {
	for w.next(t) {
	}
	if t.After(w.now) {
		w.now = t
	}
}

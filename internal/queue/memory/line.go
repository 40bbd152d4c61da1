package memory

import (
	"container/heap"
	"container/list"
	"time"
)

// message is one of a line, at its places there.
type message struct {
	id        int64
	body      string
	sentAt    time.Time
	visibleAt time.Time
	receives  int64

	place   int           // in line.waiting
	element *list.Element // of line.sent
}

// line is the messages of one queue, in two orders.
type line struct {
	byID    map[int64]*message
	sent    list.List // in order of id, which is that of expiry
	waiting byVisibility
}

func newLine() *line { return &line{byID: map[int64]*message{}} }

func (l *line) clone() *line {
	c := newLine()
	for m := range l.all {
		copied := *m
		c.add(&copied)
	}
	return c
}

// all calls yield with each message, in order of id.
func (l *line) all(yield func(*message) bool) {
	for e := l.sent.Front(); e != nil; e = e.Next() {
		if !yield(e.Value.(*message)) {
			return
		}
	}
}

// add adds a message that is newer than all others.
func (l *line) add(m *message) {
	l.byID[m.id] = m
	m.element = l.sent.PushBack(m)
	heap.Push(&l.waiting, m)
}

func (l *line) remove(m *message) {
	delete(l.byID, m.id)
	l.sent.Remove(m.element)
	heap.Remove(&l.waiting, m.place)
}

// next is the message that has been visible for the longest time; nil: none is visible.
func (l *line) next(now time.Time) *message {
	if len(l.waiting) == 0 || l.waiting[0].visibleAt.After(now) {
		return nil
	}
	return l.waiting[0]
}

// show makes a message visible at a time.
func (l *line) show(m *message, at time.Time) {
	m.visibleAt = at
	heap.Fix(&l.waiting, m.place)
}

// expire removes the messages that were sent at a time or earlier.
func (l *line) expire(until time.Time) {
	for e := l.sent.Front(); e != nil && !e.Value.(*message).sentAt.After(until); e = l.sent.Front() {
		l.remove(e.Value.(*message))
	}
}

// byVisibility is a heap of messages: the one that has been visible for the longest time comes first.
type byVisibility []*message

func (h byVisibility) Len() int { return len(h) }

func (h byVisibility) Less(i, j int) bool {
	if !h[i].visibleAt.Equal(h[j].visibleAt) {
		return h[i].visibleAt.Before(h[j].visibleAt)
	}
	return h[i].id < h[j].id
}

func (h byVisibility) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *byVisibility) Push(m any) {
	m.(*message).place = len(*h)
	*h = append(*h, m.(*message))
}

func (h *byVisibility) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return m
}

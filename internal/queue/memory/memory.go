// Package memory is the queue of idle hosts in memory: that of the embedded default, the reference of the port, and what the simulator and
// the explorer build on. It is deterministic, and never waits for a message. A message is a hint: when controld starts again, its queue is
// empty, and by-pool finds the hosts that were pooled before. Calls take a time that grows with the logarithm of the messages.
package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/hint"
)

// Queue keeps the messages of every resource and usage class.
type Queue struct {
	// Now is the queue's clock. Visibility is how long a received message is hidden, Retention how long one
	// is kept. Change them only while nothing calls, such as on a new Clone.
	Now        func() time.Time
	Visibility time.Duration
	Retention  time.Duration
	// Logger gets the messages that cannot be parsed; default none.
	Logger hclog.Logger

	mu     sync.Mutex
	lastID int64
	lines  map[lifecycle.QueueName]*line
}

// New returns an empty queue with the clock now and the default times.
func New(now func() time.Time) *Queue {
	return &Queue{
		Now:        now,
		Visibility: hint.Visibility,
		Retention:  hint.Retention,
		Logger:     hclog.NewNullLogger(),
		lines:      map[lifecycle.QueueName]*line{},
	}
}

// Clone returns an independent copy with the same clock.
func (q *Queue) Clone() *Queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &Queue{Now: q.Now, Visibility: q.Visibility, Retention: q.Retention, Logger: q.Logger, lastID: q.lastID, lines: map[lifecycle.QueueName]*line{}}
	for name, l := range q.lines {
		c.lines[name] = l.clone()
	}
	return c
}

// Send puts each message into the queue of its class.
func (q *Queue) Send(ctx context.Context, messages ...lifecycle.Message) error {
	for _, m := range messages {
		body, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("send message of %s: %w", m.InstanceID, err)
		}
		if err := q.SendBody(ctx, hint.QueueOf(m), string(body)); err != nil {
			return err
		}
	}
	return nil
}

// SendBody puts a body as it is into a queue, as another producer could.
func (q *Queue) SendBody(ctx context.Context, name lifecycle.QueueName, body string) error {
	if err := ctx.Err(); err != nil {
		return &lifecycle.UnavailableError{What: "send message", Err: err}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastID++
	now := q.Now()
	q.line(name, now).add(&message{id: q.lastID, body: body, sentAt: now, visibleAt: now})
	return nil
}

// Receive hands out at most limit messages, the longest visible first.
func (q *Queue) Receive(ctx context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	if err := hint.CheckLimit(limit); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &lifecycle.UnavailableError{What: "receive messages", Err: err}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	l := q.line(name, now)
	var deliveries []lifecycle.Delivery
	for len(deliveries) < limit {
		m := l.next(now)
		if m == nil {
			break
		}
		parsed, err := hint.ParseMessage([]byte(m.body))
		if err != nil {
			q.Logger.Warn("deleting a queue message that cannot be parsed", logkey.Class, name.ResourceClass, logkey.Usage, name.UsageClass, logkey.Error, err)
			l.remove(m)
			continue
		}
		l.show(m, now.Add(q.Visibility))
		m.receives++
		deliveries = append(deliveries, lifecycle.Delivery{Message: parsed, Handle: hint.Handle(m.id, m.receives)})
	}
	return deliveries, nil
}

// Delete removes deliveries; an unknown or outdated handle is no error.
func (q *Queue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "delete messages", name, handles, (*line).remove)
}

// Return makes deliveries visible at once; an unknown or outdated handle is no error.
func (q *Queue) Return(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "return messages", name, handles, func(l *line, m *message) {
		if now := q.Now(); m.visibleAt.After(now) {
			l.show(m, now)
		}
	})
}

// settle does something with each message whose newest delivery has one of the handles.
func (q *Queue) settle(ctx context.Context, what string, name lifecycle.QueueName, handles []string, do func(*line, *message)) error {
	if err := hint.CheckHandles(what, handles); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &lifecycle.UnavailableError{What: what, Err: err}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(name, q.Now())
	for _, handle := range handles {
		id, receives, ok := hint.ParseHandle(handle)
		if m := l.byID[id]; ok && m != nil && m.receives == receives {
			do(l, m)
		}
	}
	return nil
}

// line is the messages of a queue, without those that have expired.
func (q *Queue) line(name lifecycle.QueueName, now time.Time) *line {
	l := q.lines[name]
	if l == nil {
		l = newLine()
		q.lines[name] = l
	}
	l.expire(now.Add(-q.Retention))
	return l
}

// Dump returns everything in the queue as text, a message a line in order: two
// queues with equal dumps answer alike.
func (q *Queue) Dump() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var b strings.Builder
	names := slices.SortedFunc(maps.Keys(q.lines), func(a, b lifecycle.QueueName) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	for _, name := range names {
		for m := range q.lines[name].all {
			fmt.Fprintf(&b, "message %s %s #%d.%d sent %s visible %s %s\n", name.ResourceClass, name.UsageClass,
				m.id, m.receives, m.sentAt.UTC().Format(time.RFC3339Nano), m.visibleAt.UTC().Format(time.RFC3339Nano), m.body)
		}
	}
	return b.String()
}

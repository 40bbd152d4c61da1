// Package memory is the queue of idle hosts in memory: the reference of the port, and what the simulator and
// the explorer build on. It is deterministic, and never waits for a message.
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

	mu       sync.Mutex
	lastID   int64
	messages map[lifecycle.QueueName][]message // in order of id
}

// message is never changed in place once it is in a slice that a clone shares.
type message struct {
	id        int64
	body      string
	sentAt    time.Time
	visibleAt time.Time
	receives  int64
}

// New returns an empty queue with the clock now and the default times.
func New(now func() time.Time) *Queue {
	return &Queue{
		Now:        now,
		Visibility: hint.Visibility,
		Retention:  hint.Retention,
		Logger:     hclog.NewNullLogger(),
		messages:   map[lifecycle.QueueName][]message{},
	}
}

// Clone returns an independent copy with the same clock.
func (q *Queue) Clone() *Queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &Queue{
		Now: q.Now, Visibility: q.Visibility, Retention: q.Retention, Logger: q.Logger,
		lastID: q.lastID, messages: maps.Clone(q.messages),
	}
	for name, messages := range c.messages {
		c.messages[name] = slices.Clone(messages)
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
	q.expire(name)
	q.lastID++
	now := q.Now()
	q.messages[name] = append(q.messages[name], message{id: q.lastID, body: body, sentAt: now, visibleAt: now})
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
	q.expire(name)
	var deliveries []lifecycle.Delivery
	for _, m := range q.visible(name) {
		if len(deliveries) == limit {
			break
		}
		parsed, err := hint.ParseMessage([]byte(m.body))
		if err != nil {
			q.Logger.Warn("deleting a queue message that cannot be parsed", logkey.Class, name.ResourceClass, logkey.Usage, name.UsageClass, logkey.Error, err)
			q.remove(name, m.id)
			continue
		}
		m.visibleAt = q.Now().Add(q.Visibility)
		m.receives++
		q.replace(name, m)
		deliveries = append(deliveries, lifecycle.Delivery{Message: parsed, Handle: hint.Handle(m.id, m.receives)})
	}
	return deliveries, nil
}

// Delete removes deliveries; an unknown or outdated handle is no error.
func (q *Queue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "delete messages", name, handles, func(m message) { q.remove(name, m.id) })
}

// Return makes deliveries visible at once; an unknown or outdated handle is no error.
func (q *Queue) Return(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "return messages", name, handles, func(m message) {
		if now := q.Now(); m.visibleAt.After(now) {
			m.visibleAt = now
		}
		q.replace(name, m)
	})
}

// settle does something with each message whose newest delivery has one of the handles.
func (q *Queue) settle(ctx context.Context, what string, name lifecycle.QueueName, handles []string, do func(message)) error {
	if err := hint.CheckHandles(what, handles); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &lifecycle.UnavailableError{What: what, Err: err}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range slices.Clone(q.messages[name]) {
		if slices.Contains(handles, hint.Handle(m.id, m.receives)) {
			do(m)
		}
	}
	return nil
}

// visible returns the messages that may be received, the longest visible first.
func (q *Queue) visible(name lifecycle.QueueName) []message {
	now := q.Now()
	var found []message
	for _, m := range q.messages[name] {
		if !m.visibleAt.After(now) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b message) int { return a.visibleAt.Compare(b.visibleAt) })
	return found
}

func (q *Queue) expire(name lifecycle.QueueName) {
	now := q.Now()
	q.messages[name] = slices.DeleteFunc(q.messages[name], func(m message) bool {
		return now.Sub(m.sentAt) >= q.Retention
	})
}

func (q *Queue) remove(name lifecycle.QueueName, id int64) {
	q.messages[name] = slices.DeleteFunc(q.messages[name], func(m message) bool { return m.id == id })
}

func (q *Queue) replace(name lifecycle.QueueName, m message) {
	for i := range q.messages[name] {
		if q.messages[name][i].id == m.id {
			q.messages[name][i] = m
		}
	}
}

// Dump returns everything in the queue as text, a message a line in order: two
// queues with equal dumps answer alike.
func (q *Queue) Dump() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var b strings.Builder
	names := slices.SortedFunc(maps.Keys(q.messages), func(a, b lifecycle.QueueName) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	for _, name := range names {
		for _, m := range q.messages[name] {
			fmt.Fprintf(&b, "message %s %s #%d.%d sent %s visible %s %s\n", name.ResourceClass, name.UsageClass,
				m.id, m.receives, m.sentAt.UTC().Format(time.RFC3339Nano), m.visibleAt.UTC().Format(time.RFC3339Nano), m.body)
		}
	}
	return b.String()
}

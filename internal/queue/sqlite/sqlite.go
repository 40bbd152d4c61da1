// Package sqlite is the queue of idle hosts of the embedded default. It keeps its messages in the SQLite file
// of the state store, and never waits for one: a look costs microseconds, and by-pool finds what a moment
// would have brought.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/hint"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Options are the times of a queue; the zero value takes those of package hint.
type Options struct {
	// Visibility is how long a received message is hidden from others.
	Visibility time.Duration
	// Retention is how long a message is kept.
	Retention time.Duration
}

// Queue keeps the messages of every resource and usage class.
type Queue struct {
	db         *db.DB
	visibility time.Duration
	retention  time.Duration
}

// New returns the queue in an open file, which its opener closes.
func New(file *db.DB, o Options) *Queue {
	q := &Queue{db: file, visibility: o.Visibility, retention: o.Retention}
	if q.visibility <= 0 {
		q.visibility = hint.Visibility
	}
	if q.retention <= 0 {
		q.retention = hint.Retention
	}
	return q
}

const (
	insertMessage = `INSERT INTO messages (resource_class, usage_class, visible_at, expires_at, body) VALUES (?1, ?2, ?3, ?4, ?5)`
	anyVisible    = `SELECT 1 FROM messages
		WHERE resource_class = ?1 AND usage_class = ?2 AND visible_at <= ?3 AND expires_at > ?3 LIMIT 1`
	takeVisible = `UPDATE messages SET visible_at = ?4, receives = receives + 1
		WHERE id IN (SELECT id FROM messages
			WHERE resource_class = ?1 AND usage_class = ?2 AND visible_at <= ?3 AND expires_at > ?3
			ORDER BY visible_at, id LIMIT ?5 + 0)
		RETURNING id, receives, body`
	deleteByID    = `DELETE FROM messages WHERE id = ?1`
	deleteMessage = `DELETE FROM messages
		WHERE id = ?1 AND receives = ?2 AND resource_class = ?3 AND usage_class = ?4`
	returnMessage = `UPDATE messages SET visible_at = min(visible_at, ?5)
		WHERE id = ?1 AND receives = ?2 AND resource_class = ?3 AND usage_class = ?4`
)

// Send puts each message into the queue of its class.
func (q *Queue) Send(ctx context.Context, messages ...lifecycle.Message) error {
	if len(messages) == 0 {
		return nil
	}
	bodies := make([]string, len(messages))
	for i, m := range messages {
		body, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("send message of %s: %w", m.InstanceID, err)
		}
		bodies[i] = string(body)
	}
	return q.db.Write(ctx, "send messages", func(c *db.Conn) error {
		for i, m := range messages {
			if err := q.insert(c, hint.QueueOf(m), bodies[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// SendBody puts a body as it is into a queue, as another producer could.
func (q *Queue) SendBody(ctx context.Context, name lifecycle.QueueName, body string) error {
	return q.db.Write(ctx, "send message", func(c *db.Conn) error { return q.insert(c, name, body) })
}

func (q *Queue) insert(c *db.Conn, name lifecycle.QueueName, body string) error {
	now := q.db.Now()
	_, err := c.Exec(insertMessage, name.ResourceClass, string(name.UsageClass),
		db.Nanos(now), db.Nanos(now.Add(q.retention)), body)
	return err
}

// Receive hands out at most limit messages, the longest visible ones. An empty
// queue costs a read and no write.
func (q *Queue) Receive(ctx context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	const what = "receive messages"
	if err := hint.CheckLimit(limit); err != nil {
		return nil, err
	}
	empty := false
	err := q.db.Read(ctx, what, func(c *db.Conn) error {
		var one int64
		err := c.Get(anyVisible, []any{name.ResourceClass, string(name.UsageClass), db.Nanos(q.db.Now())}, &one)
		if empty = errors.Is(err, sql.ErrNoRows); empty {
			return nil
		}
		return err
	})
	if err != nil || empty {
		return nil, err
	}
	var deliveries []lifecycle.Delivery
	err = q.db.Write(ctx, what, func(c *db.Conn) (err error) {
		deliveries, err = q.take(c, name, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return deliveries, nil
}

// take receives until the limit is reached or nothing is left, since messages
// that cannot be parsed fall away.
func (q *Queue) take(c *db.Conn, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	var deliveries []lifecycle.Delivery
	for len(deliveries) < limit {
		var received int
		var broken []int64
		now := q.db.Now()
		args := []any{
			name.ResourceClass, string(name.UsageClass), db.Nanos(now), db.Nanos(now.Add(q.visibility)), limit - len(deliveries),
		}
		err := c.Each(takeVisible, args, func(rows *sql.Rows) error {
			var id, receives int64
			var body []byte
			if err := rows.Scan(&id, &receives, &body); err != nil {
				return err
			}
			received++
			m, err := hint.ParseMessage(body)
			if err != nil {
				q.db.Logger().Warn("deleting a queue message that cannot be parsed",
					logkey.Class, name.ResourceClass, logkey.Usage, name.UsageClass, logkey.Error, err)
				broken = append(broken, id)
				return nil
			}
			deliveries = append(deliveries, lifecycle.Delivery{Message: m, Handle: hint.Handle(id, receives)})
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, id := range broken {
			if _, err := c.Exec(deleteByID, id); err != nil {
				return nil, err
			}
		}
		if received == 0 || len(broken) == 0 {
			break
		}
	}
	return deliveries, nil
}

// Delete removes deliveries; an unknown or outdated handle is no error.
func (q *Queue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "delete messages", name, handles, func(c *db.Conn, key []any) error {
		_, err := c.Exec(deleteMessage, key...)
		return err
	})
}

// Return makes deliveries visible at once; an unknown or outdated handle is no error.
func (q *Queue) Return(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.settle(ctx, "return messages", name, handles, func(c *db.Conn, key []any) error {
		_, err := c.Exec(returnMessage, append(key, db.Nanos(q.db.Now()))...)
		return err
	})
}

// settle does something with each message whose newest delivery has one of the handles.
func (q *Queue) settle(ctx context.Context, what string, name lifecycle.QueueName, handles []string, do func(c *db.Conn, key []any) error) error {
	if err := hint.CheckHandles(what, handles); err != nil || len(handles) == 0 {
		return err
	}
	return q.db.Write(ctx, what, func(c *db.Conn) error {
		for _, handle := range handles {
			id, receives, ok := hint.ParseHandle(handle)
			if !ok {
				continue
			}
			if err := do(c, []any{id, receives, name.ResourceClass, string(name.UsageClass)}); err != nil {
				return err
			}
		}
		return nil
	})
}

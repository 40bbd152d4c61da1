package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

type (
	webhook     = lifecycle.Webhook
	webhookPage = lifecycle.Page[lifecycle.Webhook]
)

const (
	insertWebhook = `INSERT INTO webhooks (doc, version, due_at, expires_at, delivery_id)
		VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	updateWebhook = `UPDATE webhooks SET doc = ?1, version = ?2, due_at = ?3, expires_at = ?4
		WHERE delivery_id = ?5 AND version = ?2 - 1`
	selectWebhook     = `SELECT doc FROM webhooks WHERE delivery_id = ?1`
	selectDueWebhooks = `SELECT delivery_id, doc FROM webhooks
		WHERE due_at <= ?1 AND (due_at, delivery_id) > (?2, ?3) ORDER BY due_at, delivery_id LIMIT ?4`
)

// webhookRow is the delivery as the columns of its row, in the order of the
// statements' parameters.
func webhookRow(what string, w webhook) ([]any, error) {
	doc, err := document(what, w)
	return []any{doc, w.Version, db.Time(w.DueAt), db.Time(w.ExpiresAt), w.DeliveryID}, err
}

// CreateWebhook remembers a delivery with version 1: ErrExists if its id is
// known.
func (s *Store) CreateWebhook(ctx context.Context, w webhook) error {
	what := "create webhook " + w.DeliveryID
	w.Version = 1
	columns, err := webhookRow(what, row.Webhook(w))
	if err != nil {
		return err
	}
	return s.change(ctx, what, lifecycle.ErrExists, insertWebhook, columns...)
}

// UpdateWebhook replaces the row whose stored version is w.Version and returns
// it as stored: else ErrLost.
func (s *Store) UpdateWebhook(ctx context.Context, w webhook) (webhook, error) {
	what := "update webhook " + w.DeliveryID
	w = row.Webhook(w)
	w.Version++
	columns, err := webhookRow(what, w)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrConflict, updateWebhook, columns...)
	}
	if err != nil {
		return webhook{}, err
	}
	return w, nil
}

// Webhook reads one delivery: ErrNotFound.
func (s *Store) Webhook(ctx context.Context, deliveryID string) (w webhook, err error) {
	what := "read webhook " + deliveryID
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		w, err = one[webhook](c, what, selectWebhook, deliveryID)
		return err
	})
	return w, err
}

// DueWebhooks lists the deliveries with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueWebhooks(ctx context.Context, now time.Time, of lifecycle.PageOf) (page webhookPage, err error) {
	after, err := webhooksByDue.after(of)
	if err != nil {
		return page, err
	}
	what := "list " + webhooksByDue.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		due, read, err := sound[webhook](s, c, what, selectDueWebhooks, db.Nanos(now), after.number, after.texts[0], oneMore(of))
		if err == nil {
			page, err = webhooksByDue.pageOfSound(due, read, of)
		}
		return err
	})
	return page, err
}

// change runs a statement that changes one row, or none when its condition does
// not hold, which is the error otherwise.
func (s *Store) change(ctx context.Context, what string, otherwise error, query string, args ...any) error {
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(query, args...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", what, otherwise)
		}
		return err
	})
}

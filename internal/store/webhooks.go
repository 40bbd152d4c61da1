package store

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// WebhooksByDue orders the webhooks that are to be looked at.
var WebhooksByDue = &Index{Name: "webhooks by due", Order: Due, Prefix: "webhook-"}

// Webhooks are the deliveries that GitHub made.
var Webhooks = define(Spec[lifecycle.Webhook]{
	Name:       "webhook",
	Key:        func(w *lifecycle.Webhook) Key { return Key{w.DeliveryID} },
	KeyColumns: []string{"delivery_id"},
	Version:    func(w *lifecycle.Webhook) *int64 { return &w.Version },
	Expires:    func(w *lifecycle.Webhook) time.Time { return w.ExpiresAt },
	Columns: []Column[lifecycle.Webhook]{
		{Due, func(w *lifecycle.Webhook) Value { return TimeIf(!w.DueAt.IsZero(), w.DueAt) }},
	},
	Indexes: []*Index{WebhooksByDue},
	SQL:     Table{Name: "webhooks"}, Dynamo: Table{Name: "jobs", Prefix: "webhook/"},
})

// CreateWebhook remembers a delivery: ErrExists if its id is known.
func (s Store) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	return create(ctx, s, Webhooks, w)
}

// UpdateWebhook replaces the row whose stored version is w.Version: else ErrConflict.
func (s Store) UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error) {
	return update(ctx, s, Webhooks, w)
}

// Webhook reads one delivery, consistently: ErrNotFound.
func (s Store) Webhook(ctx context.Context, deliveryID string) (lifecycle.Webhook, error) {
	return get(ctx, s, Webhooks, Key{deliveryID})
}

// DueWebhooks lists the deliveries that were due at now or before, the longest due first.
func (s Store) DueWebhooks(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Webhook], error) {
	return listDue(ctx, s, Webhooks, "due_webhooks", WebhooksByDue, now, page)
}

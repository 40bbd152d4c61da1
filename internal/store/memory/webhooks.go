package memory

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// CreateWebhook remembers a delivery with version 1: ErrExists if its id is
// known.
func (s *Store) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	what := "create webhook " + w.DeliveryID
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if _, ok := s.webhooks[w.DeliveryID]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	w.Version = 1
	s.webhooks[w.DeliveryID] = new(row.Webhook(w))
	return nil
}

// UpdateWebhook replaces the row whose stored version is w.Version and returns
// it as stored: else ErrLost.
func (s *Store) UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error) {
	what := "update webhook " + w.DeliveryID
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Webhook{}, err
	}
	defer end()
	if old, ok := s.webhooks[w.DeliveryID]; !ok || old.Version != w.Version {
		return lifecycle.Webhook{}, lost(what)
	}
	w.Version++
	s.webhooks[w.DeliveryID] = new(row.Webhook(w))
	return row.Webhook(w), nil
}

// Webhook reads one delivery: ErrNotFound.
func (s *Store) Webhook(ctx context.Context, deliveryID string) (lifecycle.Webhook, error) {
	what := "read webhook " + deliveryID
	end, err := s.begin(ctx, what)
	if err != nil {
		return lifecycle.Webhook{}, err
	}
	defer end()
	w, ok := s.webhooks[deliveryID]
	if !ok {
		return lifecycle.Webhook{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.Webhook(*w), nil
}

// DueWebhooks lists the deliveries with dueAt at or before now, the longest due
// first.
func (s *Store) DueWebhooks(ctx context.Context, now time.Time, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Webhook], error) {
	end, err := s.begin(ctx, "list "+webhooksByDue.name)
	if err != nil {
		return lifecycle.Page[lifecycle.Webhook]{}, err
	}
	defer end()
	due := func(w *lifecycle.Webhook) bool { return expired(w.DueAt, now) }
	return webhooksByDue.page(maps.Values(s.webhooks), due, of)
}

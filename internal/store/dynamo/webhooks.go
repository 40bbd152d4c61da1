package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

type (
	webhook     = lifecycle.Webhook
	webhookPage = lifecycle.Page[lifecycle.Webhook]
)

func webhookRowKey(deliveryID string) string { return "webhook/" + deliveryID }

// webhookItem is the delivery with the attributes that its key and index need.
func webhookItem(w webhook) (item, error) {
	it, err := encode(w, w.ExpiresAt)
	if err != nil {
		return nil, err
	}
	key := webhookRowKey(w.DeliveryID)
	it[rowKey] = text(key)
	if !w.DueAt.IsZero() {
		it[dueShard] = text(dueWebhookShards + shard(key))
	}
	return it, nil
}

func webhookOf(it item) (webhook, error) {
	w, err := decode[webhook](it)
	w.ExpiresAt = exactly(w.ExpiresAt, it)
	return row.Webhook(w), err
}

// CreateWebhook remembers a delivery with version 1: ErrExists if its id is
// known.
func (s *Store) CreateWebhook(ctx context.Context, w webhook) error {
	what := "create webhook " + w.DeliveryID
	w.Version = 1
	_, err := s.putWebhook(ctx, what, w, s.isFree(rowKey))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// UpdateWebhook replaces the row whose stored version is w.Version and returns
// it as stored: else ErrLost.
func (s *Store) UpdateWebhook(ctx context.Context, w webhook) (webhook, error) {
	what := "update webhook " + w.DeliveryID
	holds := isVersion(w.Version)
	w.Version++
	w, err := s.putWebhook(ctx, what, w, holds)
	if errors.Is(err, errCondition) {
		return webhook{}, lost(what)
	}
	return w, err
}

func (s *Store) putWebhook(ctx context.Context, what string, w webhook, c condition) (webhook, error) {
	if err := begin(ctx, what); err != nil {
		return webhook{}, err
	}
	w = row.Webhook(w)
	it, err := webhookItem(w)
	if err != nil {
		return webhook{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, jobs, it, c); err != nil {
		return webhook{}, err
	}
	return w, nil
}

// Webhook reads one delivery, consistently: ErrNotFound.
func (s *Store) Webhook(ctx context.Context, deliveryID string) (webhook, error) {
	what := "read webhook " + deliveryID
	it, err := s.getJobsRow(ctx, what, webhookRowKey(deliveryID))
	if err != nil {
		return webhook{}, err
	}
	w, err := webhookOf(it)
	switch {
	case err != nil:
		return webhook{}, fmt.Errorf("%s: %w", what, err)
	case expired(w.ExpiresAt, s.now()):
		return webhook{}, notFound(what)
	}
	return w, nil
}

// DueWebhooks lists the deliveries with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueWebhooks(ctx context.Context, now time.Time, of lifecycle.PageOf) (webhookPage, error) {
	return list(ctx, s, read[webhook]{
		query:      query{listing: webhooksByDue, partitions: shardsOf(dueWebhookShards), upTo: timeText(now)},
		consistent: true, sound: s.soundWebhook,
		in: func(w webhook) bool { return expired(w.DueAt, now) },
	}, of)
}

// soundWebhook is the delivery of an item; false if it is damaged, which is told
// of once, or has expired.
func (s *Store) soundWebhook(it item) (webhook, bool) {
	w, err := webhookOf(it)
	if err != nil {
		s.tellDamaged(jobs, textOf(it, rowKey), err)
		return webhook{}, false
	}
	return w, !expired(w.ExpiresAt, s.now())
}

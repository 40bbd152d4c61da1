package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// missedSince is how far back the first sweep of a replica asks: GitHub keeps
	// deliveries for three days, and a queued job for one.
	missedSince = 24 * time.Hour
	// missedOverlap is how far a sweep reaches into the time that the sweep before it
	// covered: a delivery shows as missed only once GitHub has given up on it.
	missedOverlap = 10 * time.Minute
)

// MissedSweep recovers webhooks that did not arrive. It goes by the deliveries that GitHub lists as failed
// or, where the fleet cannot list those, by the jobs that wait in the configured repositories.
type MissedSweep struct {
	op.Stages
	env *Jobs

	began        time.Time
	missed       []lifecycle.MissedDelivery
	repositories []string
	found        []lifecycle.WorkflowJob
	// unread is set when a delivery could not be read; unavailable counts such deliveries in a row.
	unread      bool
	unavailable int
}

// NewMissedSweep begins a sweep.
func (js *Jobs) NewMissedSweep() *MissedSweep {
	s := &MissedSweep{env: js, Stages: js.Ops.Stages("")}
	s.Next = s.list
	return s
}

func (s *MissedSweep) list(ctx context.Context, now time.Time) (op.Progress, error) {
	s.began = now
	s.env.mu.Lock()
	since := s.env.recovered
	s.env.mu.Unlock()
	if since.IsZero() {
		since = now.Add(-missedSince)
	}
	missed, err := s.env.Options.GitHub.MissedDeliveries(ctx, since)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		s.repositories, s.Next = s.env.Repositories, s.listQueued
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("list missed deliveries: %w", err)
	}
	s.missed, s.Next = missed, s.recover
	return op.Again, nil
}

// recover handles one missed delivery as if it had arrived. It is marked as late,
// since what it says may not hold any more.
func (s *MissedSweep) recover(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.missed) == 0 {
		if !s.unread {
			s.env.mu.Lock()
			s.env.recovered = s.began.Add(-missedOverlap)
			s.env.mu.Unlock()
		}
		return op.Done, nil
	}
	m := s.missed[0]
	if m.Event != lifecycle.EventWorkflowJob && m.Event != lifecycle.EventWorkflowRun {
		s.missed = s.missed[1:]
		return op.Again, nil
	}
	if _, err := s.env.Options.Store.Webhook(ctx, m.DeliveryID); !errors.Is(err, lifecycle.ErrNotFound) {
		if err != nil {
			err = fmt.Errorf("read webhook %s: %w", m.DeliveryID, err)
		}
		if !s.Past(ctx, err) {
			return op.Again, err
		}
		s.missed = s.missed[1:]
		return op.Again, nil
	}
	body, err := s.env.Options.GitHub.DeliveryPayload(ctx, m)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
	case err != nil:
		// A delivery that cannot be read does not hold up the others. The next sweep tries it again.
		if s.unavailable++; s.unavailable >= op.UnavailableAtMost {
			return op.Again, fmt.Errorf("read delivery %s: %w", m.DeliveryID, err)
		}
		s.env.Log.Warn("missed delivery not read; trying again", logkey.Delivery, m.DeliveryID, logkey.Error, err)
		s.unread, s.missed = true, s.missed[1:]
		return op.Again, nil
	default:
		s.unavailable = 0
		err := s.take(ctx, m, body, now)
		if !s.Past(ctx, err) {
			return op.Again, err
		}
		s.unread = s.unread || err != nil
	}
	s.missed = s.missed[1:]
	return op.Again, nil
}

func (s *MissedSweep) take(ctx context.Context, m lifecycle.MissedDelivery, body []byte, now time.Time) error {
	w, err := s.env.Options.Parse(m.Event, m.DeliveryID, body, now)
	if err != nil {
		s.env.Log.Debug("missed delivery skipped", logkey.Delivery, m.DeliveryID, logkey.Event, m.Event, logkey.Error, err)
		return nil
	}
	w.Late = true
	return s.note(ctx, w, now)
}

func (s *MissedSweep) note(ctx context.Context, w lifecycle.Webhook, now time.Time) error {
	err := s.env.TakeWebhook(ctx, w, now)
	if errors.Is(err, ErrNotOurs) || errors.Is(err, lifecycle.ErrExists) {
		return nil
	}
	if err == nil {
		s.env.Log.Info("webhook recovered", logkey.Delivery, w.DeliveryID, logkey.Action, w.Action)
	}
	return err
}

// listQueued lists the jobs that wait in one repository.
func (s *MissedSweep) listQueued(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.repositories) == 0 {
		return op.Done, nil
	}
	repository := s.repositories[0]
	jobs, err := s.env.Options.GitHub.QueuedJobs(ctx, repository)
	if err != nil {
		err = fmt.Errorf("list queued jobs of %s: %w", repository, err)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.repositories, s.found, s.Next = s.repositories[1:], jobs, s.noteQueued
	return op.Again, nil
}

// noteQueued handles one waiting job as if its webhook had arrived. A job that has a
// row is known already and needs nothing.
func (s *MissedSweep) noteQueued(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.found) == 0 {
		s.Next = s.listQueued
		return op.Again, nil
	}
	j := s.found[0]
	s.found = s.found[1:]
	_, err := s.env.Options.Store.Job(ctx, j.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		err = s.note(ctx, lifecycle.Webhook{DeliveryID: fmt.Sprintf("found-%d", j.ID), Kind: lifecycle.WebhookFound, Action: j.Status, Job: &j}, now)
	case err != nil:
		err = fmt.Errorf("read job %d: %w", j.ID, err)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	return op.Again, nil
}

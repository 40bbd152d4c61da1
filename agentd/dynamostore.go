package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/host/imds"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// dynamoStore asks for the key of its rows on first use, and keeps it. Without the key the
// store counts as unavailable: credentials may come late, and a job may be running.
type dynamoStore struct {
	tables *dynamo.Store
	learn  func(context.Context) (string, error)
	// fail is called with the error of a key that is not this host's. The agent cannot work then.
	fail func(error)

	key  string
	view *dynamo.HostView
}

func (s *dynamoStore) open(ctx context.Context) error {
	if s.view != nil {
		return nil
	}
	key, err := s.learn(ctx)
	var wrong *imds.IdentityError
	if errors.As(err, &wrong) {
		s.fail(&configError{err})
	}
	if err != nil {
		return err
	}
	s.key, s.view = key, s.tables.ForHost(key)
	return nil
}

// Record implements agent.Store.
func (s *dynamoStore) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	if err := s.open(ctx); err != nil {
		return lifecycle.Record{}, time.Time{}, fmt.Errorf("read record: %w", err)
	}
	return s.view.Record(ctx, consistent)
}

// PutReport implements agent.Store. It fills in the key.
func (s *dynamoStore) PutReport(ctx context.Context, p lifecycle.Report) error {
	if err := s.open(ctx); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	p.HostKey = s.key
	return s.view.PutReport(ctx, p)
}

// Close has nothing to close.
func (s *dynamoStore) Close() error { return nil }

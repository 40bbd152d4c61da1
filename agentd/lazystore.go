package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host/imds"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// lazyStore opens the store on first use. If it cannot be opened it counts as unavailable, since a job may be
// running.
type lazyStore struct {
	// open returns the host's part of the store with the key of the host's rows.
	open func(context.Context) (view agent.Store, hostKey string, err error)

	view    agent.Store
	hostKey string
	file    io.Closer // nil for none
}

func (s *lazyStore) opened(ctx context.Context) (err error) {
	if s.view == nil {
		s.view, s.hostKey, err = s.open(ctx)
	}
	return err
}

// Record implements agent.Store.
func (s *lazyStore) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	if err := s.opened(ctx); err != nil {
		return lifecycle.Record{}, time.Time{}, fmt.Errorf("read record: %w", err)
	}
	return s.view.Record(ctx, consistent)
}

// PutReport implements agent.Store. It fills in the key.
func (s *lazyStore) PutReport(ctx context.Context, p lifecycle.Report) error {
	if err := s.opened(ctx); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	p.HostKey = s.hostKey
	return s.view.PutReport(ctx, p)
}

// Close closes the database, if one is open.
func (s *lazyStore) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// openSQLite opens the database file that controld uses.
func openSQLite(path, hostKey string) *lazyStore {
	s := &lazyStore{}
	s.open = func(context.Context) (agent.Store, string, error) {
		file, err := db.Open(path, db.Options{Light: true})
		if err != nil {
			return nil, "", errors.Join(lifecycle.ErrUnavailable, err)
		}
		s.file = file
		return sqlite.New(file).ForHost(hostKey), hostKey, nil
	}
	return s
}

// openDynamo learns the key of the host's rows first: credentials may come late. It calls fail with the error of
// a key that is not this host's: the agent cannot work then.
func openDynamo(
	tables sdk.Config, c config, log hclog.Logger, learn func(context.Context) (string, error), fail func(error),
) *lazyStore {
	store := dynamo.New(dynamodb.NewFromConfig(tables), dynamo.Options{Prefix: c.Store.DynamoDB.Prefix, Logger: log.Named("store")})
	return &lazyStore{open: func(ctx context.Context) (agent.Store, string, error) {
		key, err := learn(ctx)
		var wrong *imds.IdentityError
		if errors.As(err, &wrong) {
			fail(&configError{err})
		}
		if err != nil {
			return nil, "", err
		}
		return store.ForHost(key), key, nil
	}}
}

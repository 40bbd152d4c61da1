package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

type (
	worker     = model.Worker
	workerPage = lifecycle.Page[model.Worker]
)

func workerRowKey(service, id string) string { return "worker/" + service + "/" + id }

// workerPartition is where the workers of a service are in the index by run. No
// run is called like one.
func workerPartition(service string) string { return "workers/" + service }

// workerItem is the worker with the attributes that its key and index need.
// Those never change, so that a heartbeat writes no index.
func workerItem(w worker) (item, error) {
	it, err := encode(w, w.ExpiresAt)
	if err != nil {
		return nil, err
	}
	it[rowKey], it[runKey] = text(workerRowKey(w.Service, w.ID)), text(workerPartition(w.Service))
	return it, nil
}

func workerOf(it item) (worker, error) {
	w, err := decode[worker](it)
	w.ExpiresAt = exactly(w.ExpiresAt, it)
	return row.Worker(w), err
}

// Worker reads one worker, consistently: ErrNotFound.
func (s *Store) Worker(ctx context.Context, service, id string) (worker, error) {
	what := fmt.Sprintf("read worker %s of service %s", id, service)
	it, err := s.getJobsRow(ctx, what, workerRowKey(service, id))
	if err != nil {
		return worker{}, err
	}
	// One that has expired and not gone yet is read like any other: its version
	// is what the next write goes by.
	w, err := workerOf(it)
	if err != nil {
		return worker{}, fmt.Errorf("%s: %w", what, err)
	}
	return w, nil
}

// UpdateWorker replaces the worker whose stored version is w.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateWorker(ctx context.Context, w worker) (worker, error) {
	what := fmt.Sprintf("update worker %s of service %s", w.ID, w.Service)
	if err := begin(ctx, what); err != nil {
		return worker{}, err
	}
	holds := isVersion(w.Version)
	if w.Version == 0 {
		holds = isNone(rowKey)
	}
	w = row.Worker(w)
	w.Version++
	it, err := workerItem(w)
	if err != nil {
		return worker{}, fmt.Errorf("%s: %w", what, err)
	}
	err = s.put(ctx, what, jobs, it, holds)
	switch {
	case errors.Is(err, errCondition):
		return worker{}, lost(what)
	case err != nil:
		return worker{}, err
	}
	return w, nil
}

// Workers lists the workers of a service, by id.
func (s *Store) Workers(ctx context.Context, service string, of lifecycle.PageOf) (workerPage, error) {
	return list(ctx, s, read[worker]{
		query: query{listing: workersByID, partitions: []string{workerPartition(service)}},
		sound: s.soundWorker,
		in:    func(w worker) bool { return w.Service == service },
	}, of)
}

// soundWorker is the worker of an item; false if it is damaged, which is told of
// once, or has expired.
func (s *Store) soundWorker(it item) (worker, bool) {
	w, err := workerOf(it)
	if err != nil {
		s.tellDamaged(jobs, textOf(it, rowKey), err)
		return worker{}, false
	}
	return w, !expired(w.ExpiresAt, s.now())
}

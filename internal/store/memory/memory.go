// Package memory is the state store in memory: the reference of the port, and
// what the simulator builds on. It is deterministic: the same calls at the same
// times give the same answers and the same Dump.
package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Store keeps every table of docs/design.md#what-is-stored in maps. Rows in them are never
// changed in place, only replaced, and go in and out as copies.
type Store struct {
	// Now is the store's clock: the Date of its answers, and what expires.
	// Change it only while nobody calls, such as on a fresh Clone.
	Now func() time.Time

	mu        sync.Mutex
	instances map[string]*lifecycle.Record
	reports   map[string]*lifecycle.Report
	requests  map[requestKey]*lifecycle.Request
	events    []lifecycle.Event // in order of id
	lastEvent int64
	leases    map[string]lifecycle.Lease
	services  map[string]model.Service
	webhooks  map[string]*lifecycle.Webhook
	jobs      map[int64]*lifecycle.Job
	turns     map[string]lifecycle.SlotTable
	work      map[workKey]*model.Job
	workers   map[workKey]*model.Worker
	hold      lifecycle.FleetHold
	breakers  map[string]lifecycle.Breaker
	accounts  map[string]lifecycle.QuotaLedger
	seen      map[seenKey]time.Time // until when
	purgedAt  time.Time
}

// purgeEvery is how often expired rows are removed, at most.
const purgeEvery = time.Minute

type requestKey struct{ repository, runID, requestID string }

type seenKey struct{ kind, id string }

// New returns an empty store with the clock now.
func New(now func() time.Time) *Store {
	return &Store{
		Now:       now,
		instances: map[string]*lifecycle.Record{},
		reports:   map[string]*lifecycle.Report{},
		requests:  map[requestKey]*lifecycle.Request{},
		leases:    map[string]lifecycle.Lease{},
		services:  map[string]model.Service{},
		webhooks:  map[string]*lifecycle.Webhook{},
		jobs:      map[int64]*lifecycle.Job{},
		turns:     map[string]lifecycle.SlotTable{},
		work:      map[workKey]*model.Job{},
		workers:   map[workKey]*model.Worker{},
		breakers:  map[string]lifecycle.Breaker{},
		accounts:  map[string]lifecycle.QuotaLedger{},
		seen:      map[seenKey]time.Time{},
	}
}

// Clone returns an independent copy with the same clock. Since rows are never
// changed in place it costs the maps, not their contents.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Store{
		Now:       s.Now,
		instances: maps.Clone(s.instances),
		reports:   maps.Clone(s.reports),
		requests:  maps.Clone(s.requests),
		events:    slices.Clip(s.events),
		lastEvent: s.lastEvent,
		leases:    maps.Clone(s.leases),
		services:  maps.Clone(s.services),
		webhooks:  maps.Clone(s.webhooks),
		jobs:      maps.Clone(s.jobs),
		turns:     maps.Clone(s.turns),
		work:      maps.Clone(s.work),
		workers:   maps.Clone(s.workers),
		hold:      s.hold,
		breakers:  maps.Clone(s.breakers),
		accounts:  maps.Clone(s.accounts),
		seen:      maps.Clone(s.seen),
		purgedAt:  s.purgedAt,
	}
}

// begin starts an operation: it refuses one whose caller has gone and takes
// the lock, which the returned function gives back.
func (s *Store) begin(ctx context.Context, what string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, &lifecycle.UnavailableError{What: what, Err: err}
	}
	s.mu.Lock()
	return s.mu.Unlock, nil
}

// beginWrite is begin for a write, which also removes what has expired.
func (s *Store) beginWrite(ctx context.Context, what string) (end func(), err error) {
	end, err = s.begin(ctx, what)
	if err == nil {
		s.purge(s.Now())
	}
	return end, err
}

func (s *Store) purge(now time.Time) {
	if now.Sub(s.purgedAt) < purgeEvery {
		return
	}
	s.purgedAt = now
	maps.DeleteFunc(s.instances, func(_ string, r *lifecycle.Record) bool { return expired(r.ExpiresAt, now) })
	maps.DeleteFunc(s.requests, func(_ requestKey, q *lifecycle.Request) bool { return expired(q.ExpiresAt, now) })
	maps.DeleteFunc(s.webhooks, func(_ string, w *lifecycle.Webhook) bool { return expired(w.ExpiresAt, now) })
	maps.DeleteFunc(s.jobs, func(_ int64, j *lifecycle.Job) bool { return expired(j.ExpiresAt, now) })
	maps.DeleteFunc(s.work, func(_ workKey, j *model.Job) bool { return expired(j.ExpiresAt, now) })
	maps.DeleteFunc(s.workers, func(_ workKey, w *model.Worker) bool { return expired(w.ExpiresAt, now) })
	maps.DeleteFunc(s.seen, func(_ seenKey, until time.Time) bool { return expired(until, now) })
	live := func(e lifecycle.Event) bool { return !expired(e.At.Add(row.EventRetention), now) }
	if i := slices.IndexFunc(s.events, live); i != 0 {
		// A clone may share the array, so the rest moves to one of its own.
		s.events = slices.DeleteFunc(slices.Clone(s.events), func(e lifecycle.Event) bool { return !live(e) })
	}
}

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func lost(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }

// Package store declares the rows that every state store keeps and gives them typed methods.
//
// A kind of rows is declared once: its name, key, version, expiry, normal form and indexes (Spec). A database
// implements Backend, which is seven methods for rows of any kind and a few for what is no plain row: claims,
// reports, the history, leases and ids that are seen once. Store has the typed methods that the use cases' ports
// ask for, written once over a Backend.
//
// Packages memory, sqlite and dynamo are the databases, storetest is the conformance suite of all three, and
// token makes page tokens.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Store has the typed methods of all kinds over a backend. Its methods are those of the ports that the use cases
// declare; see there for what each promises.
type Store struct {
	backend Backend
	// observe, unless nil, is called with the name and the outcome of every call.
	observe func(op string, err error)
}

// New returns the store over a backend.
func New(backend Backend) Store { return Store{backend: backend} }

// Observed is the store with an observer, which is called after every call with the call's name, such as
// "claim_instance", and its outcome.
func (s Store) Observed(observe func(op string, err error)) Store {
	s.observe = observe
	return s
}

// observed is deferred, and so reads what the call has come to.
func (s Store) observed(verb, name string, err *error) {
	if s.observe != nil {
		s.observe(verb+name, *err)
	}
}

func create[T any](ctx context.Context, s Store, k KindOf[T], r T) (err error) {
	defer s.observed("create_", k.Name, &err)
	k.normalize(&r)
	*k.Version(&r) = 1
	return s.backend.Create(ctx, k.Kind, &r)
}

// update returns the row as stored.
func update[T any](ctx context.Context, s Store, k KindOf[T], r T) (T, error) {
	return updateAs(ctx, s, "update_", k, r)
}

// updateAs is update as an operation of another name.
func updateAs[T any](ctx context.Context, s Store, verb string, k KindOf[T], r T) (_ T, err error) {
	defer s.observed(verb, k.Name, &err)
	k.normalize(&r)
	*k.Version(&r)++
	if err := s.backend.Update(ctx, k.Kind, &r); err != nil {
		var none T
		return none, err
	}
	return r, nil
}

func get[T any](ctx context.Context, s Store, k KindOf[T], key Key) (r T, err error) {
	defer s.observed("", k.Name, &err)
	row, err := s.backend.Get(ctx, k.Kind, key)
	switch {
	case err == nil:
		return *row.(*T), nil
	case k.spec.Blank != nil && errors.Is(err, lifecycle.ErrNotFound):
		return k.spec.Blank(key), nil
	}
	return r, err
}

func getMany[T any](ctx context.Context, s Store, op string, k KindOf[T], keys []Key) (_ []T, err error) {
	defer s.observed("", op, &err)
	rows, err := s.backend.GetMany(ctx, k.Kind, keys)
	if err != nil {
		return nil, err
	}
	return typed[T](rows), nil
}

func list[T any](ctx context.Context, s Store, _ KindOf[T], q Query) (page lifecycle.Page[T], err error) {
	defer s.observed("", q.Op, &err)
	rows, next, err := s.backend.List(ctx, q)
	if err != nil {
		return page, err
	}
	return lifecycle.Page[T]{Items: typed[T](rows), Next: next}, nil
}

// listAll is list for all rows of the partitions.
func listAll[T any](ctx context.Context, s Store, k KindOf[T], q Query) ([]T, error) {
	q.All = true
	page, err := list(ctx, s, k, q)
	return page.Items, err
}

// listDue lists the rows that were due at now or before, the longest due first.
func listDue[T any](ctx context.Context, s Store, k KindOf[T], op string, x *Index, now time.Time, page lifecycle.PageOf) (lifecycle.Page[T], error) {
	return list(ctx, s, k, Query{Op: op, Index: x, Partitions: whole, UpTo: now, Page: page})
}

// whole is the one partition of an index that has no By.
var whole = [][]string{{}}

func typed[T any](rows []Row) []T {
	if len(rows) == 0 {
		return nil
	}
	items := make([]T, len(rows))
	for i, row := range rows {
		items[i] = *row.(*T)
	}
	return items
}

// EventRetention is how long an event is kept after its time.
const EventRetention = 24 * time.Hour

// NormalizeEvent returns the event in its normal form.
func NormalizeEvent(e lifecycle.Event) lifecycle.Event {
	setUTC(&e.At)
	setUTC(&e.Since)
	return e
}

// NormalizeReport returns the report in its normal form.
func NormalizeReport(p lifecycle.Report) lifecycle.Report {
	for _, at := range []*time.Time{&p.HeartbeatAt, &p.RegisteredAt, &p.InterruptionAt, &p.RebalanceAt} {
		setUTC(at)
	}
	return p
}

// Reports reads the reports of the hosts that have one, by host key.
func (s Store) Reports(ctx context.Context, hostKeys []string) (_ map[string]lifecycle.Report, err error) {
	defer s.observed("", "reports", &err)
	return s.backend.Reports(ctx, hostKeys)
}

// AllReports lists every report.
func (s Store) AllReports(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Report], err error) {
	defer s.observed("", "all_reports", &err)
	return s.backend.AllReports(ctx, page)
}

// DeleteReport removes a report; a missing one is no error.
func (s Store) DeleteReport(ctx context.Context, hostKey string) (err error) {
	defer s.observed("", "delete_report", &err)
	return s.backend.DeleteReport(ctx, hostKey)
}

// AddEvents appends to the history; the store gives ids.
func (s Store) AddEvents(ctx context.Context, events []lifecycle.Event) (err error) {
	defer s.observed("", "add_events", &err)
	return s.backend.AddEvents(ctx, events)
}

// EventsOfRun lists the history of a run, oldest first.
func (s Store) EventsOfRun(ctx context.Context, repository, runID string, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Event], err error) {
	defer s.observed("", "events_of_run", &err)
	return s.backend.EventsOfRun(ctx, repository, runID, page)
}

// EventsOfInstance lists the newest events of a host, or with an empty id of the whole fleet, at most limit, none from before since and, if
// until is not zero, only those before it, oldest first.
func (s Store) EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (_ lifecycle.HostHistory, err error) {
	defer s.observed("", "events_of_instance", &err)
	return s.backend.EventsOfInstance(ctx, instanceID, since, until, limit)
}

// EventsSince lists the whole history after a page token, oldest first.
func (s Store) EventsSince(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Event], err error) {
	defer s.observed("", "events_since", &err)
	return s.backend.EventsSince(ctx, page)
}

// LastEvent is the page token of the newest event.
func (s Store) LastEvent(ctx context.Context) (_ string, err error) {
	defer s.observed("", "last_event", &err)
	return s.backend.LastEvent(ctx)
}

// Backend is a database: what an adapter implements, once for all kinds.
//
// Every write is conditional. Methods return lifecycle.ErrNotFound, ErrExists, ErrConflict (the condition did not hold)
// or ErrUnavailable (the write may or may not have taken effect), wrapped. Rows come in their normal form, with the
// version that they are stored under; a backend keeps no reference to them, and gives away none to its own.
type Backend interface {
	// Create writes a row of version 1: ErrExists if its key is taken.
	Create(ctx context.Context, k *Kind, row Row) error
	// Update replaces the row whose stored version is one less than the row's: else ErrConflict. For an Upsert kind
	// version 1 means that there is no row yet.
	Update(ctx context.Context, k *Kind, row Row) error
	// Get reads one row, consistently: ErrNotFound.
	Get(ctx context.Context, k *Kind, key Key) (Row, error)
	// GetMany reads many rows, consistently and in any order. Missing and damaged ones are left out.
	GetMany(ctx context.Context, k *Kind, keys []Key) ([]Row, error)
	// List reads a page of an index, which may lag, and the token of the next page. Damaged rows are left out.
	List(ctx context.Context, q Query) (rows []Row, next string, err error)
	// Keys is List for the keys alone, without the rows.
	Keys(ctx context.Context, q Query) ([]Key, error)
	// Count counts the rows of each of the query's partitions, up to atMost.
	Count(ctx context.Context, q Query, atMost int) ([]int, error)

	Special
}

// Special is what is no plain row.
type Special interface {
	// ClaimInstance takes a pooled host in one write without a read, if c.Holds for its record: else ErrConflict.
	ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error)

	// Reports are written by the agents and untrusted: one that cannot be read counts as none.
	Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error)
	// AllReports lists every report.
	AllReports(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error)
	// DeleteReport removes a report; a missing one is no error.
	DeleteReport(ctx context.Context, hostKey string) error

	// AddEvents appends to the history, which is kept for EventRetention; the store gives ids.
	AddEvents(ctx context.Context, events []lifecycle.Event) error
	// EventsOfRun lists the history of a run, oldest first.
	EventsOfRun(ctx context.Context, repository, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)
	// EventsOfInstance lists the newest events of a host, or with an empty id of the whole fleet, at most limit, none before since and, if
	// until is not zero, only those before it, oldest first.
	EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error)
	// EventsSince lists the whole history after a page token, oldest first. Next is never empty.
	EventsSince(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)
	// LastEvent is the page token of the newest event.
	LastEvent(ctx context.Context) (string, error)

	// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

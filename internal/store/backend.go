package store

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
	// EventsOfInstance lists the newest events of a host, at most limit and none before since, oldest first.
	EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (lifecycle.HostHistory, error)
	// EventsSince lists the whole history after a page token, oldest first. Next is never empty.
	EventsSince(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)
	// LastEvent is the page token of the newest event.
	LastEvent(ctx context.Context) (string, error)

	// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

package store

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The indexes of requests.
var (
	RequestsByRun = &Index{Name: "requests of run", By: []string{"repository", "run_id"}}
	RequestsByDue = &Index{Name: "requests by due", Order: Due}
)

// Requests are the runs' requests for hosts.
var Requests = define(Spec[lifecycle.Request]{
	Name:       "request",
	Key:        func(q *lifecycle.Request) Key { return Key{q.Repository, q.RunID, q.RequestID} },
	KeyColumns: []string{"repository", "run_id", "request_id"},
	Version:    func(q *lifecycle.Request) *int64 { return &q.Version },
	Expires:    func(q *lifecycle.Request) time.Time { return q.ExpiresAt },
	Columns: []Column[lifecycle.Request]{
		{Due, func(q *lifecycle.Request) Value { return TimeIf(!q.DueAt.IsZero(), q.DueAt) }},
	},
	Indexes: []*Index{RequestsByRun, RequestsByDue},
	SQL:     Table{Name: "requests"}, Dynamo: Table{Name: "requests"},
})

// CreateRequest writes a new request: ErrExists if its id is taken in the run.
func (s Store) CreateRequest(ctx context.Context, q lifecycle.Request) error {
	return create(ctx, s, Requests, q)
}

// UpdateRequest replaces the request whose stored version is q.Version: else ErrConflict.
func (s Store) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	return update(ctx, s, Requests, q)
}

// Request reads one request, consistently: ErrNotFound.
func (s Store) Request(ctx context.Context, repository, runID, requestID string) (lifecycle.Request, error) {
	return get(ctx, s, Requests, Key{repository, runID, requestID})
}

// RequestsOfRun lists the requests of a run, consistently, by request id. A damaged one is an error: a release that
// left it out would be incomplete.
func (s Store) RequestsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Request, error) {
	return listAll(ctx, s, Requests, Query{
		Op: "requests_of_run", Index: RequestsByRun, Partitions: [][]string{{repository, runID}}, Strict: true,
	})
}

// DueRequests lists the requests that were due at now or before, the longest due first.
func (s Store) DueRequests(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
	return listDue(ctx, s, Requests, "due_requests", RequestsByDue, now, page)
}

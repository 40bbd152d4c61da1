package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// CreateRequest writes a new request with version 1: ErrExists if its id is
// taken in the run.
func (s *Store) CreateRequest(ctx context.Context, q lifecycle.Request) error {
	what := "create request " + q.RequestID
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if _, ok := s.requests[keyOf(q)]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	q.Version = 1
	s.requests[keyOf(q)] = new(row.Request(q))
	return nil
}

// UpdateRequest replaces the request whose stored version is q.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	what := "update request " + q.RequestID
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Request{}, err
	}
	defer end()
	if old, ok := s.requests[keyOf(q)]; !ok || old.Version != q.Version {
		return lifecycle.Request{}, lost(what)
	}
	q.Version++
	s.requests[keyOf(q)] = new(row.Request(q))
	return row.Request(q), nil
}

// Request reads one request: ErrNotFound.
func (s *Store) Request(ctx context.Context, repository, runID, requestID string) (lifecycle.Request, error) {
	what := "read request " + requestID
	end, err := s.begin(ctx, what)
	if err != nil {
		return lifecycle.Request{}, err
	}
	defer end()
	q, ok := s.requests[requestKey{repository, runID, requestID}]
	if !ok {
		return lifecycle.Request{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.Request(*q), nil
}

// RequestsOfRun lists the requests of a run, by request id.
func (s *Store) RequestsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Request, error) {
	end, err := s.begin(ctx, "read requests of run "+runID)
	if err != nil {
		return nil, err
	}
	defer end()
	var found []lifecycle.Request
	for key, q := range s.requests {
		if key.repository == repository && key.runID == runID {
			found = append(found, row.Request(*q))
		}
	}
	slices.SortFunc(found, func(a, b lifecycle.Request) int { return strings.Compare(a.RequestID, b.RequestID) })
	return found, nil
}

// DueRequests lists the requests with dueAt at or before now, the longest due
// first.
func (s *Store) DueRequests(ctx context.Context, now time.Time, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
	end, err := s.begin(ctx, "list requests by due")
	if err != nil {
		return lifecycle.Page[lifecycle.Request]{}, err
	}
	defer end()
	due := func(q *lifecycle.Request) bool { return expired(q.DueAt, now) }
	return requestsByDue.page(maps.Values(s.requests), due, of)
}

func keyOf(q lifecycle.Request) requestKey { return requestKey{q.Repository, q.RunID, q.RequestID} }

package dynamo

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

type request = lifecycle.Request

// requestItem is the request with the attributes that its key and index need.
func requestItem(q request) (item, error) {
	it, err := encode(q, q.ExpiresAt)
	if err != nil {
		return nil, err
	}
	run := lifecycle.RunKey(q.Repository, q.RunID)
	it[runKey] = text(run)
	if !q.DueAt.IsZero() {
		it[dueShard] = text(shard(run + " " + q.RequestID))
	}
	return it, nil
}

func requestOf(it item) (request, error) {
	q, err := decode[request](it)
	q.ExpiresAt = exactly(q.ExpiresAt, it)
	return row.Request(q), err
}

// CreateRequest writes a new request with version 1: ErrExists if its id is
// taken in the run.
func (s *Store) CreateRequest(ctx context.Context, q request) error {
	what := "create request " + q.RequestID
	q.Version = 1
	_, err := s.putRequest(ctx, what, q, s.isFree(runKey))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// UpdateRequest replaces the request whose stored version is q.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateRequest(ctx context.Context, q request) (request, error) {
	what := "update request " + q.RequestID
	holds := isVersion(q.Version)
	q.Version++
	q, err := s.putRequest(ctx, what, q, holds)
	if errors.Is(err, errCondition) {
		return request{}, lost(what)
	}
	return q, err
}

func (s *Store) putRequest(ctx context.Context, what string, q request, c condition) (request, error) {
	if err := begin(ctx, what); err != nil {
		return request{}, err
	}
	q = row.Request(q)
	it, err := requestItem(q)
	if err != nil {
		return request{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, requests, it, c); err != nil {
		return request{}, err
	}
	return q, nil
}

// Request reads one request, consistently: ErrNotFound.
func (s *Store) Request(ctx context.Context, repository, run, id string) (request, error) {
	what := "read request " + id
	if err := begin(ctx, what); err != nil {
		return request{}, err
	}
	if id == "" { // which no key can be
		return request{}, notFound(what)
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(requests), ConsistentRead: sdk.Bool(true),
		Key: item{runKey: text(lifecycle.RunKey(repository, run)), requestID: text(id)},
	})
	if err != nil {
		return request{}, s.failed(what, requests, err)
	}
	if out.Item == nil {
		return request{}, notFound(what)
	}
	q, err := requestOf(out.Item)
	switch {
	case err != nil:
		return request{}, fmt.Errorf("%s: %w", what, err)
	case expired(q.ExpiresAt, s.now()):
		return request{}, notFound(what)
	}
	return q, nil
}

// RequestsOfRun lists the requests of a run, consistently, by request id. A
// damaged one is an error: a release that passed it over would not be one.
func (s *Store) RequestsOfRun(ctx context.Context, repository, run string) ([]request, error) {
	what := "read requests of run " + run
	if err := begin(ctx, what); err != nil {
		return nil, err
	}
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName: s.table(requests), ConsistentRead: sdk.Bool(true),
		KeyConditionExpression:    sdk.String("#run = :run"),
		ExpressionAttributeNames:  map[string]string{"#run": runKey},
		ExpressionAttributeValues: item{":run": text(lifecycle.RunKey(repository, run))},
	})
	var found []request
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.failed(what, requests, err)
		}
		for _, it := range out.Items {
			q, err := requestOf(it)
			if err != nil {
				return nil, fmt.Errorf("%s: request %s: %w", what, textOf(it, requestID), err)
			}
			if !expired(q.ExpiresAt, s.now()) {
				found = append(found, q)
			}
		}
	}
	return found, nil
}

// soundRequest is the request of an item; false if it is damaged, which is
// told of once, or has expired.
func (s *Store) soundRequest(it item) (request, bool) {
	q, err := requestOf(it)
	if err != nil {
		s.tellDamaged(requests, textOf(it, runKey)+" "+textOf(it, requestID), err)
		return request{}, false
	}
	return q, !expired(q.ExpiresAt, s.now())
}

package dynamo

import (
	"context"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/retry"
)

// What one call takes, by DynamoDB's API reference.
const (
	batchReads  = 100
	batchWrites = 25
)

// patientTries is how often the rest of a batch is sent while nothing of it is taken. With the waits of the
// retryer that is a few seconds; then the table is as good as down.
const patientTries = 8

// batchGet reads rows by key, in any order; missing ones are left out. No key may come twice.
func (s *Store) batchGet(ctx context.Context, what, table string, keys []item, consistent bool) ([]item, error) {
	var found []item
	for chunk := range slices.Chunk(keys, batchReads) {
		p := s.patience(what)
		for rest := chunk; len(rest) > 0; {
			out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				*s.table(table): {Keys: rest, ConsistentRead: sdk.Bool(consistent)},
			}})
			if err != nil {
				return nil, s.failed(what, table, err)
			}
			found = append(found, out.Responses[*s.table(table)]...)
			before := len(rest)
			if rest = out.UnprocessedKeys[*s.table(table)].Keys; len(rest) > 0 {
				err = p.wait(ctx, len(rest) < before)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// batchPut writes rows without a condition.
func (s *Store) batchPut(ctx context.Context, what, table string, rows []item) error {
	for chunk := range slices.Chunk(rows, batchWrites) {
		rest := make([]types.WriteRequest, len(chunk))
		for i, row := range chunk {
			rest[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: row}}
		}
		p := s.patience(what)
		for len(rest) > 0 {
			out, err := s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{*s.table(table): rest},
			})
			if err != nil {
				return s.failed(what, table, err)
			}
			before := len(rest)
			if rest = out.UnprocessedItems[*s.table(table)]; len(rest) > 0 {
				err = p.wait(ctx, len(rest) < before)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// patience is that with a table that takes only a part of what it is sent.
type patience struct {
	what    string
	retryer sdk.Retryer
	tries   int
}

func (s *Store) patience(what string) *patience {
	return &patience{what: what, retryer: s.client.Options().Retryer}
}

// wait lets some time pass before another try, with the jitter of the client's
// own retries. Progress gives new patience.
func (p *patience) wait(ctx context.Context, progress bool) error {
	if progress {
		p.tries = 0
	}
	if p.tries++; p.tries >= patientTries {
		return &lifecycle.UnavailableError{What: p.what, Err: errThrottled}
	}
	return pause(ctx, p.what, p.retryer, p.tries)
}

// pause waits as the client does after so many tries.
func pause(ctx context.Context, what string, retryer sdk.Retryer, tries int) error {
	d, err := retryer.RetryDelay(tries, errThrottled)
	if err != nil {
		return &lifecycle.UnavailableError{What: what, Err: err}
	}
	return sleep(ctx, what, d)
}

func sleep(ctx context.Context, what string, d time.Duration) error {
	if retry.Sleep(ctx, d) != nil {
		return &lifecycle.UnavailableError{What: what, Err: ctx.Err()}
	}
	return nil
}

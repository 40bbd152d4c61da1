package dynamo

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/retry"
)

// errCondition says that the condition of a write did not hold.
var errCondition = errors.New("condition does not hold")

// condition is that of a write.
type condition struct {
	expression string
	names      map[string]string
	values     item
}

// isVersion holds for a row with the version, and for no row that is missing.
func isVersion(n int64) condition {
	return condition{"#version = :version", map[string]string{"#version": version}, item{":version": number(n)}}
}

// isFree holds for no row, and for one that has expired and not gone yet.
func (s *Store) isFree(key string) condition {
	return condition{
		"attribute_not_exists(#key) OR #expiresAt <= :now",
		map[string]string{"#key": key, "#expiresAt": expiresAt},
		item{":now": number(s.now().Unix())},
	}
}

// isNone holds for no row.
func isNone(key string) condition {
	return condition{"attribute_not_exists(#key)", map[string]string{"#key": key}, nil}
}

// put writes a row under a condition, and gives it an id: errCondition.
//
// The SDK sends a write again when its answer does not come. If the first one was carried out, the second
// finds its own row and fails its condition. So every such write has an id, and a failed one returns the row
// that it found, which shows whose it is and costs no read. Comparing the rest would not do: two writers may
// well write the same.
func (s *Store) put(ctx context.Context, what, table string, row item, c condition) error {
	id := s.writeID()
	row[writeID] = text(id)
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: s.table(table), Item: row,
		ConditionExpression: &c.expression, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if found, failed := conditionFailed(err); failed {
		if textOf(found, writeID) == id {
			return nil
		}
		return errCondition
	}
	if err != nil {
		return s.failed(what, table, err)
	}
	return nil
}

// conditionFailed reports whether an error is a failed condition, with the row that was found.
func conditionFailed(err error) (item, bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

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

// seenID is the sort key of what was seen: its subject has it all.
const seenID = "seen"

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered
// already. Each is a subject of its own in the events table, so that no
// partition has them all; watchers read another subject and never meet them.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	what := "remember " + kind + " " + id
	it := item{subject: text("seen/" + url.PathEscape(kind) + "/" + id), eventID: text(seenID), untilKey: timeValue(until)}
	setExpiry(it, until)
	err := s.put(ctx, what, events, it, s.isOver())
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// isOver holds for no row, and for one whose time is over and that has not gone yet.
func (s *Store) isOver() condition {
	return condition{
		"attribute_not_exists(#subject) OR #until <= :now",
		map[string]string{"#subject": subject, "#until": untilKey},
		item{":now": timeValue(s.now())},
	}
}

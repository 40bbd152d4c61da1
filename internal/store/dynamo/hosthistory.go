package dynamo

import (
	"context"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// The history has no index by host: the events of an operation, about many hosts, are one item. A copy for
// each host would cost every claim and release a write unit a host, for a question that a person asks now and
// then. So the question pays: the chain is read backwards, until it is older than what was asked for.
const (
	// hostHistoryReads bounds the calls of one question, 1 MB each: 128 read units, about 3,500 events. A
	// fleet of 1,000 hosts with jobs of 10 minutes writes that in some 8 minutes, one of 50 in 3 hours.
	hostHistoryReads = 24
	// straggle is how much older the events of an item may be than those of the
	// item before: an operation writes what it has to tell when it comes to rest.
	straggle = 10 * time.Minute
)

// EventsOfInstance lists the newest events of a host, at most so many and none
// from before since. It reads no more of the history than hostHistoryReads.
func (s *Store) EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (lifecycle.HostHistory, error) {
	input := &dynamodb.QueryInput{
		TableName:                 s.table(events),
		KeyConditionExpression:    sdk.String("#subject = :chain"),
		ExpressionAttributeNames:  map[string]string{"#subject": subject},
		ExpressionAttributeValues: item{":chain": text(chain)},
		ScanIndexForward:          sdk.Bool(false),
	}
	var newest []event
	var from time.Time // how far back was read
	for range s.history.reads {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return lifecycle.HostHistory{}, s.failed("list events of instance", events, err)
		}
		for _, it := range out.Items {
			found := s.soundEvents(it)
			for _, e := range slices.Backward(found) {
				if e.InstanceID == instanceID {
					newest = append(newest, e)
				}
				from = e.At
			}
		}
		early := !from.IsZero() && from.Before(since.Add(-straggle))
		if out.LastEvaluatedKey == nil || early || len(newest) > limit {
			return store.NewestOf(newest, since, limit), nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
	h := store.NewestOf(newest, since, limit)
	if h.From.IsZero() {
		h.From = from
	}
	return h, nil
}

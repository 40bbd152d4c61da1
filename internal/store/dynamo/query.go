package dynamo

import (
	"context"
	"math"
	"slices"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// query asks for the first entries of some partitions of a listing.
type query struct {
	listing    listing
	partitions []string
	after      place  // behind which the entries begin
	upTo       string // the last value of the sort attribute; empty: no end
	count      int
}

// entries are the first entries, in order over all partitions. What is read
// grows with the count and the number of partitions, and with nothing else.
func (s *Store) entries(ctx context.Context, what string, q query) ([]entry, error) {
	if q.upTo != "" && q.after.sort > q.upTo {
		return nil, nil
	}
	found := make([][]entry, len(q.partitions))
	errs := make([]error, len(q.partitions))
	var wg sync.WaitGroup
	for i, partition := range q.partitions {
		wg.Go(func() { found[i], errs[i] = s.partition(ctx, what, q, partition) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b entry) int { return a.compare(b.place) })
	return all[:min(len(all), q.count)], nil
}

// partition are at least the first entries of one partition, if it has so many, and every one that has the
// time of the last of them: DynamoDB may give those in any order.
func (s *Store) partition(ctx context.Context, what string, q query, partition string) ([]entry, error) {
	input := q.input(s, partition)
	var found []entry
	for {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return nil, s.failed(what, q.listing.table.name, err)
		}
		for _, it := range out.Items {
			if e := q.listing.entryOf(it); q.after == (place{}) || e.compare(q.after) > 0 {
				found = append(found, e)
			}
		}
		if out.LastEvaluatedKey == nil || q.enough(found) {
			return found, nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// enough reports whether the entries of a partition, in its order, are those that the query needs of it.
func (q query) enough(found []entry) bool {
	if len(found) < q.count {
		return false
	}
	return q.listing.unique() || found[len(found)-1].sort > found[q.count-1].sort
}

func (q query) input(s *Store, partition string) *dynamodb.QueryInput {
	x := q.listing.index
	expression, names, values := "#hash = :hash", map[string]string{"#hash": x.hash}, item{":hash": text(partition)}
	if q.after.sort != "" {
		values[":from"] = text(q.after.sort)
	}
	if q.upTo != "" {
		values[":to"] = text(q.upTo)
	}
	switch {
	case q.after.sort != "" && q.upTo != "":
		expression += " AND #sort BETWEEN :from AND :to"
	case q.after.sort != "":
		expression += " AND #sort >= :from"
	case q.upTo != "":
		expression += " AND #sort <= :to"
	}
	if len(values) > 1 {
		names["#sort"] = x.sort
	}
	return &dynamodb.QueryInput{
		TableName: s.table(q.listing.table.name), IndexName: &x.name,
		KeyConditionExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		// One more than the token's own row and those that are needed shows
		// that no more have the time of the last.
		Limit: sdk.Int32(int32(q.count + 2)),
	}
}

// countPartition counts the entries of a partition, up to atMost.
func (s *Store) countPartition(ctx context.Context, what string, q query, partition string, atMost int) (n int, err error) {
	in := q.input(s, partition)
	in.Select = types.SelectCount
	for n < atMost {
		in.Limit = sdk.Int32(int32(min(atMost-n, math.MaxInt32)))
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return 0, s.failed(what, q.listing.table.name, err)
		}
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	return n, nil
}

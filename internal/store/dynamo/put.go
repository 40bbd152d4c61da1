package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

package cost_test

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// writesAtOnce is how many writes a transaction of DynamoDB may have.
const writesAtOnce = 100

// batch writes what tests and hosts write, with the conditions that the store
// sets, in a few transactions: thousands of calls would take most of the time of
// these tests. One goroutine uses it.
type batch struct {
	store  *dynamo.Store
	client *dynamodb.Client
	writes []types.TransactWriteItem
}

// newBatch is a batch of writes past the meter.
func (w *world) newBatch() *batch {
	w.t.Helper()
	config := w.storeConfig(nil)
	b := &batch{client: dynamodb.NewFromConfig(config)}
	config.APIOptions = append(slices.Clone(config.APIOptions), func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("batch", b.take), middleware.Before)
	})
	b.store = dynamo.New(dynamodb.NewFromConfig(config), dynamo.Options{Now: w.clock.now})
	return b
}

// take keeps a write for later, and says that it is done. Other calls are made.
func (b *batch) take(ctx context.Context, call middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	switch in := call.Parameters.(type) {
	case *dynamodb.PutItemInput:
		b.writes = append(b.writes, types.TransactWriteItem{Put: &types.Put{
			TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		}})
		out.Result = &dynamodb.PutItemOutput{}
	case *dynamodb.UpdateItemInput:
		b.writes = append(b.writes, types.TransactWriteItem{Update: &types.Update{
			TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		}})
		out.Result = &dynamodb.UpdateItemOutput{}
	default:
		return next.HandleInitialize(ctx, call)
	}
	return out, metadata, nil
}

// written makes the writes of a function, each of another row.
func (w *world) written(n int, write func(ctx context.Context, s *dynamo.Store, n int) error) {
	w.t.Helper()
	ctx := w.t.Context()
	for i := range n {
		w.must(write(ctx, w.batch.store, i))
	}
	for some := range slices.Chunk(w.batch.writes, writesAtOnce) {
		_, err := w.batch.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: some})
		w.must(err)
	}
	w.batch.writes = nil
}

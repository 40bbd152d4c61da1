package dynamo_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// suiteDatabase is the database of the conformance suite. The cases run one after the other, and each of them
// finds empty tables. New tables for each case would take about 40 calls, more than most cases make.
type suiteDatabase struct {
	// stores and agents are the clients under test. Their writes are noted.
	stores, agents *dynamodb.Client
	// client makes the tables and empties them.
	client *dynamodb.Client
	made   int

	mu sync.Mutex
	// written are the tables that may have rows.
	written map[string]bool
	// stale: the tables cannot be emptied, because a call may still be under way, or may have done anything.
	stale bool
}

func newSuiteDatabase(t *testing.T) *suiteDatabase {
	t.Helper()
	d := &suiteDatabase{client: newClient(t, awstest.DynamoDB(t)), written: map[string]bool{}, stale: true}
	noted := func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("note writes", d.note), middleware.Before)
		})
	}
	d.stores = dynamodb.New(d.client.Options(), noted)
	d.agents = dynamodb.New(newClient(t, awstest.DynamoDB(t)).Options(), noted)
	return d
}

// note notes what a call may have changed.
func (d *suiteDatabase) note(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	var tables []string
	known := true
	switch in := in.Parameters.(type) {
	case *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput, *dynamodb.QueryInput, *dynamodb.ScanInput:
	case *dynamodb.PutItemInput:
		tables = append(tables, *in.TableName)
	case *dynamodb.UpdateItemInput:
		tables = append(tables, *in.TableName)
	case *dynamodb.DeleteItemInput: // what it deletes was noted when it was written
	case *dynamodb.BatchWriteItemInput:
		tables = slices.Collect(maps.Keys(in.RequestItems))
	default:
		known = false
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, table := range tables {
		d.written[table] = true
	}
	d.stale = d.stale || !known || ctx.Err() != nil
	return out, metadata, err
}

// empty returns the options of stores that find no row. It is called when no other case runs.
func (d *suiteDatabase) empty(t *testing.T) dynamo.Options {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stale {
		d.made++
	}
	o := dynamo.Options{Prefix: fmt.Sprintf("suite%d", d.made)}
	if d.stale {
		d.make(t, o)
	}
	for table := range d.written {
		d.deleteRows(t, table)
	}
	clear(d.written)
	d.stale = false
	return o
}

// make makes tables of another prefix. The suite's clock stands in the past: its rows must not go by ours.
func (d *suiteDatabase) make(t *testing.T, o dynamo.Options) {
	t.Helper()
	if _, err := dynamo.New(d.client, o).Ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"instances", "requests", "jobs", "events"} {
		expireRows(t, d.client, o.Prefix+"-"+table, "expiresAt", false)
	}
	clear(d.written)
}

// keysOf are the keys of the tables.
var keysOf = map[string][]string{
	"instances": {"hostKey"}, "reports": {"hostKey"}, "requests": {"runKey", "requestId"}, "jobs": {"rowKey"},
	"events": {"subject", "id"}, "leases": {"name"},
}

// batch is the most rows that DynamoDB writes in one call.
const batch = 25

// deleteRows deletes all rows of a table. The prefix has no hyphen.
func (d *suiteDatabase) deleteRows(t *testing.T, table string) {
	t.Helper()
	_, name, _ := strings.Cut(table, "-")
	pages := dynamodb.NewScanPaginator(d.client, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for rows := range slices.Chunk(page.Items, batch) {
			d.deleteBatch(t, table, keysOf[name], rows)
		}
	}
}

func (d *suiteDatabase) deleteBatch(t *testing.T, table string, keys []string, rows []map[string]types.AttributeValue) {
	t.Helper()
	var deletes []types.WriteRequest
	for _, row := range rows {
		key := map[string]types.AttributeValue{}
		for _, name := range keys {
			key[name] = row[name]
		}
		deletes = append(deletes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	out, err := d.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: deletes}})
	if err != nil || len(out.UnprocessedItems) > 0 {
		t.Fatalf("delete rows of %s: %d tables left, error %v", table, len(out.UnprocessedItems), err)
	}
}

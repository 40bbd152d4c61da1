package cost_test

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/cost"
)

// meter counts the requests as the product counts them, except those that a
// busy emulator made necessary again, and asks DynamoDB for the units of each.
type meter struct {
	calls aws.Calls

	// receiving is held during a receive that is no long poll. Moto gives two of them the same message if they come at
	// once: its receive_message (moto/sqs/models.py) looks whether a message is visible, and hides it later, without a
	// lock. SQS may do so too, but rarely.
	receiving sync.Mutex

	mu            sync.Mutex
	repeats       map[aws.Call]float64
	reads, writes float64
	// written is what was written to each table.
	written map[string]written
}

func (m *meter) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", m.handle), middleware.Before)
}

func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if f := reflect.ValueOf(in.Parameters).Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() {
		f.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	if receive, ok := in.Parameters.(*sqs.ReceiveMessageInput); ok && receive.WaitTimeSeconds < longestPoll {
		m.receiving.Lock()
		defer m.receiving.Unlock()
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	m.forgive(ctx, metadata)
	if err != nil {
		return out, metadata, err
	}
	consumed := consumedBy(reflect.ValueOf(out.Result).Elem().FieldByName("ConsumedCapacity"))
	units := unitsOf(consumed)
	units += unitsOfNothing(in.Parameters, out.Result, units)
	m.mu.Lock()
	defer m.mu.Unlock()
	if aws.Reads(awsmiddleware.GetOperationName(ctx)) {
		m.reads += units
	} else {
		m.writes += units
		m.addWritten(consumed)
	}
	return out, metadata, nil
}

// written are the writes of a table's rows, and their units with those of its indexes. DynamoDB Local does not say what each index took.
type written struct{ rows, units float64 }

// addWritten notes what each table took of a call.
func (m *meter) addWritten(consumed []types.ConsumedCapacity) {
	if m.written == nil {
		m.written = map[string]written{}
	}
	for _, c := range consumed {
		_, table, _ := strings.Cut(sdk.ToString(c.TableName), "-")
		before := m.written[table]
		m.written[table] = written{before.rows + 1, before.units + sdk.ToFloat64(c.CapacityUnits)}
	}
}

// forgive notes the tries of a call after its first.
func (m *meter) forgive(ctx context.Context, metadata middleware.Metadata) {
	tries, ok := retry.GetAttemptResults(metadata)
	if !ok || len(tries.Results) < 2 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.repeats == nil {
		m.repeats = map[aws.Call]float64{}
	}
	m.repeats[aws.Call{
		Service: strings.ToLower(awsmiddleware.GetServiceID(ctx)), Operation: awsmiddleware.GetOperationName(ctx),
	}] += float64(len(tries.Results) - 1)
}

func consumedBy(capacity reflect.Value) []types.ConsumedCapacity {
	if !capacity.IsValid() {
		return nil
	}
	switch c := capacity.Interface().(type) {
	case *types.ConsumedCapacity:
		if c != nil {
			return []types.ConsumedCapacity{*c}
		}
	case []types.ConsumedCapacity:
		return c
	}
	return nil
}

func unitsOf(consumed []types.ConsumedCapacity) (units float64) {
	for _, c := range consumed {
		units += sdk.ToFloat64(c.CapacityUnits)
	}
	return units
}

// unitsOfNothing is what it costs to read what is not there. DynamoDB Local says
// that it is free; DynamoDB takes the least there is, for each query and row.
// Source: "Capacity unit consumption for read operations" in its developer guide.
func unitsOfNothing(in, out any, units float64) float64 {
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		if units == 0 {
			return least(in.ConsistentRead)
		}
	case *dynamodb.GetItemInput:
		if units == 0 {
			return least(in.ConsistentRead)
		}
	case *dynamodb.BatchGetItemInput:
		var nothing float64
		for table, asked := range in.RequestItems {
			missing := len(asked.Keys) - len(out.(*dynamodb.BatchGetItemOutput).Responses[table])
			nothing += float64(missing) * least(asked.ConsistentRead)
		}
		return nothing
	}
	return 0
}

// least is what a read costs at least.
func least(consistent *bool) float64 {
	if sdk.ToBool(consistent) {
		return 1
	}
	return 0.5
}

// of is what was used while do ran.
func (m *meter) of(do func()) cost.Usage {
	before := m.usage()
	do()
	used := m.usage().Plus(before.Times(-1))
	maps.DeleteFunc(used.Calls, func(_ aws.Call, n float64) bool { return n == 0 })
	return used
}

// writtenBy is what do wrote to each table.
func (m *meter) writtenBy(do func()) map[string]written {
	before := m.writtenNow()
	do()
	now := m.writtenNow()
	for table, w := range before {
		now[table] = written{now[table].rows - w.rows, now[table].units - w.units}
	}
	return now
}

func (m *meter) writtenNow() map[string]written {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.written)
}

func (m *meter) usage() cost.Usage {
	u := cost.Usage{Calls: map[aws.Call]float64{}}
	for call, n := range m.calls.Counts() {
		u.Calls[call] = float64(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for call, n := range m.repeats {
		u.Calls[call] -= n
	}
	u.ReadUnits, u.WriteUnits = m.reads, m.writes
	return u
}

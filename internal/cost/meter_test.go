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
	"github.com/aws/smithy-go/middleware"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/cost"
)

// meter counts the requests as the product counts them, except those that a
// busy emulator made necessary again, and asks DynamoDB for the units of each.
type meter struct {
	calls aws.Calls

	mu            sync.Mutex
	repeats       map[aws.Call]float64
	reads, writes float64
}

func (m *meter) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", m.handle), middleware.Before)
}

func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if f := reflect.ValueOf(in.Parameters).Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() {
		f.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	m.forgive(ctx, metadata)
	if err != nil {
		return out, metadata, err
	}
	units := unitsOf(reflect.ValueOf(out.Result).Elem().FieldByName("ConsumedCapacity"))
	units += unitsOfNothing(in.Parameters, out.Result, units)
	m.mu.Lock()
	defer m.mu.Unlock()
	if aws.Reads(awsmiddleware.GetOperationName(ctx)) {
		m.reads += units
	} else {
		m.writes += units
	}
	return out, metadata, nil
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

func unitsOf(capacity reflect.Value) (units float64) {
	if !capacity.IsValid() {
		return 0
	}
	switch c := capacity.Interface().(type) {
	case *types.ConsumedCapacity:
		if c != nil {
			units = sdk.ToFloat64(c.CapacityUnits)
		}
	case []types.ConsumedCapacity:
		for _, each := range c {
			units += sdk.ToFloat64(each.CapacityUnits)
		}
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

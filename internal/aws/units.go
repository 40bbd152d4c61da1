package aws

import (
	"context"
	"math"
	"reflect"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Units are the request units that DynamoDB said it took. It takes reads by the half unit.
type Units struct{ HalfReads, Writes int64 }

// Units are those of the calls so far.
func (c *Calls) Units() Units {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.units
}

// measure asks DynamoDB for the units of each call, which costs nothing, and adds them up.
func (c *Calls) measure(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("remuda.Units",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			asks, ok := withUnits(in.Parameters)
			if !ok {
				return next.HandleInitialize(ctx, in)
			}
			in.Parameters = asks
			out, metadata, err := next.HandleInitialize(ctx, in)
			if err == nil {
				c.took(awsmiddleware.GetOperationName(ctx), unitsOf(out.Result))
			}
			return out, metadata, err
		}), middleware.Before)
}

// withUnits is the input of a call with the question for its units; false: the call takes no units. The caller may use its own input
// elsewhere, so that stays as it is.
func withUnits(input any) (any, bool) {
	v := reflect.ValueOf(input)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("ReturnConsumedCapacity").IsValid() {
		return nil, false
	}
	asks := reflect.New(v.Type().Elem())
	asks.Elem().Set(v.Elem())
	asks.Elem().FieldByName("ReturnConsumedCapacity").Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	return asks.Interface(), true
}

func unitsOf(output any) (units float64) {
	v := reflect.ValueOf(output)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("ConsumedCapacity").IsValid() {
		return 0
	}
	switch used := v.Elem().FieldByName("ConsumedCapacity").Interface().(type) {
	case *types.ConsumedCapacity:
		if used != nil {
			units = sdk.ToFloat64(used.CapacityUnits)
		}
	case []types.ConsumedCapacity:
		for _, each := range used {
			units += sdk.ToFloat64(each.CapacityUnits)
		}
	}
	return units
}

func (c *Calls) took(operation string, units float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if Reads(operation) {
		c.units.HalfReads += int64(math.Round(2 * units))
	} else {
		c.units.Writes += int64(math.Round(units))
	}
}

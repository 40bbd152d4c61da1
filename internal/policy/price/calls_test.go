package price_test

import (
	"math"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

func TestCallPrices(t *testing.T) {
	t.Parallel()
	own := []price.CallPrice{{Unit: price.WriteUnit, Region: "eu-west-1", Dollars: 7}, {Unit: price.QueueRequest, Dollars: 2}, {Unit: price.QueueRequest, Dollars: 3}}
	for _, tt := range []struct {
		region string
		used   price.Used
		want   float64
		rough  bool
	}{
		{"us-east-1", price.Used{price.ReadUnit: 1e6, price.WriteUnit: 2e6}, 0.125 + 1.25, false},
		{"us-east-1", price.Used{price.QueueRequest: 1e6}, 2, false},
		{"eu-west-1", price.Used{price.WriteUnit: 1e6}, 7, false},
		{"eu-west-1", price.Used{price.WriteUnit: 1e6, price.ReadUnit: 1e6}, 7.125, true},
		{"eu-west-1", price.Used{}, 0, false},
	} {
		dollars, rough := price.List{Calls: own, Region: tt.region}.OfCalls(tt.used)
		if math.Abs(dollars-tt.want) > 1e-9 || rough != tt.rough {
			t.Errorf("%+v: $%g, rough %v", tt, dollars, rough)
		}
	}
}

func TestAgentCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of   meter.Times
		want meter.Calls
	}{
		"none": {meter.Times{}, meter.Calls{Service: "dynamodb"}},
		"idle": {meter.Times{Idle: time.Hour}, meter.Calls{Service: "dynamodb", Requests: 7440, HalfReads: 7200, Writes: 240}},
		"boot": {meter.Times{Boot: time.Minute}, meter.Calls{Service: "dynamodb", Requests: 124, HalfReads: 120, Writes: 4}},
		"busy": {meter.Times{Busy: time.Hour, Clean: time.Minute}, meter.Calls{Service: "dynamodb", Requests: 1084, HalfReads: 840, Writes: 244}},
	} {
		if got := price.AgentCalls(tt.of); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

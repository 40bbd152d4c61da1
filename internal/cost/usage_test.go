package cost_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func TestUsage(t *testing.T) {
	racepass.OneGoroutine(t)
	u := cost.Usage{
		Calls: map[call]float64{
			{Service: "dynamodb", Operation: "GetItem"}: 1, {Service: "dynamodb", Operation: "BatchGetItem"}: 2,
			{Service: "dynamodb", Operation: "Query"}: 4, {Service: "dynamodb", Operation: "Scan"}: 8,
			{Service: "dynamodb", Operation: "PutItem"}: 16, {Service: "dynamodb", Operation: "BatchWriteItem"}: 32,
			{Service: "sqs", Operation: "ReceiveMessage"}: 64, {Service: "ec2", Operation: "CreateFleet"}: 128,
		},
		ReadUnits: 1e6, WriteUnits: 2e6,
	}
	prices := cost.Prices{ReadUnits: 3, WriteUnits: 5, QueueRequests: 1e6}
	for name, test := range map[string]struct{ got, want float64 }{
		"all calls":                           {u.Total(), 255},
		"reads":                               {u.Reads(), 15},
		"writes":                              {u.Writes(), 48},
		"of the queue":                        {u.Of("sqs"), 64},
		"of a service that was not called":    {u.Of("iam"), 0},
		"without batched reads":               {u.Without(batchRead).Total(), 253},
		"dollars":                             {u.Dollars(prices), 3 + 2*5 + 64},
		"dollars of nothing":                  {cost.Usage{}.Dollars(prices), 0},
		"twice":                               {u.Times(2).Total(), 510},
		"twice, in dollars":                   {u.Times(2).Dollars(prices), 2 * (3 + 2*5 + 64)},
		"and once more":                       {u.Times(2).Plus(u).Dollars(prices), 3 * (3 + 2*5 + 64)},
		"with nothing":                        {u.Plus(cost.Usage{}).Total(), 255},
		"nothing, with it":                    {cost.Usage{}.Plus(u).Total(), 255},
		"itself, after all that was computed": {u.Total(), 255},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", name, test.got, test.want)
		}
	}
}

func TestBars(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, test := range []struct {
		name      string
		got, want []int
	}{
		{"a claim of 1, 10, 11 and 200 hosts", []int{cost.ClaimCalls(1), cost.ClaimCalls(10), cost.ClaimCalls(11), cost.ClaimCalls(200)},
			[]int{8, 26, 30, 444}},
		{"the liveness sweep of 0, 999, 1000 and 1001 hosts",
			[]int{cost.LivenessCalls(0), cost.LivenessCalls(999), cost.LivenessCalls(1000), cost.LivenessCalls(1001)}, []int{1, 1, 2, 2}},
		{"the cloud sweep of 1, 100, 101 and 1000 hosts",
			[]int{cost.CloudReads(1), cost.CloudReads(100), cost.CloudReads(101), cost.CloudReads(1000)}, []int{2, 2, 3, 12}},
		{"EC2's pages of 1, 1000 and 1001 machines, and a launch template", []int{cost.CloudCalls(1), cost.CloudCalls(1000), cost.CloudCalls(1001)}, []int{2, 2, 3}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestWords(t *testing.T) {
	racepass.OneGoroutine(t)
	for want, got := range map[string]string{
		"$0":         money(0),
		"$0.0000103": money(0.0000103),
		"$0.125":     money(0.125),
		"$1.00":      money(1),
		"$1,234.50":  money(1234.499999),
		"999":        count(999),
		"1,000":      count(1000),
		"2,628,000":  count(2628000),
		"102.5":      count(102.5),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestTheMeter: a call counts once however often it is tried, in units too.
func TestTheMeter(t *testing.T) {
	t.Parallel()
	proxy := awstest.NewProxy(t, awstest.DynamoDB(t))
	m := &meter{}
	config := awstest.Config(t, proxy.URL(), func(o *aws.Options) { o.Calls = &m.calls })
	config.APIOptions = append(config.APIOptions, m.add)
	store := dynamo.New(dynamodb.NewFromConfig(config), dynamo.Options{})
	if _, err := store.Ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	proxy.Inject(awstest.Fault{Service: "dynamodb", Operation: "BatchGetItem", Nth: 1, Kind: awstest.InternalError})
	got := m.of(func() {
		if _, err := store.Reports(t.Context(), []string{"a", "b", "c"}); err != nil {
			t.Error(err)
		}
	})
	want := cost.Usage{Calls: map[call]float64{batchRead: 1}, ReadUnits: 1.5}
	if diff := cmp.Diff(want, got); diff != "" || m.calls.Counts()[batchRead] != 2 {
		t.Errorf("of %d tries (-want +got):\n%s", m.calls.Counts()[batchRead], diff)
	}
}

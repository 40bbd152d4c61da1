package awstest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
)

// newProxy stands before both emulators.
func newProxy(t *testing.T) *awstest.Proxy {
	t.Helper()
	p := awstest.NewProxy(t, awstest.Moto(t))
	p.Route("dynamodb", awstest.DynamoDB(t))
	return p
}

// once is a configuration that tries every call once.
func once(t *testing.T, endpoint string) sdk.Config {
	t.Helper()
	return awstest.Config(t, endpoint, func(o *aws.Options) {
		o.Retryer = aws.NewRetryer(aws.RetryOptions{Tries: 1})
	})
}

// read are a call of each service, and of each protocol.
var read = map[aws.Call]func(context.Context, sdk.Config) error{
	{Service: "dynamodb", Operation: "ListTables"}: func(ctx context.Context, c sdk.Config) error {
		_, err := dynamodb.NewFromConfig(c).ListTables(ctx, nil)
		return err
	},
	{Service: "sqs", Operation: "ListQueues"}: func(ctx context.Context, c sdk.Config) error {
		_, err := sqs.NewFromConfig(c).ListQueues(ctx, nil)
		return err
	},
	{Service: "ec2", Operation: "DescribeInstances"}: func(ctx context.Context, c sdk.Config) error {
		_, err := ec2.NewFromConfig(c).DescribeInstances(ctx, nil)
		return err
	},
	{Service: "sts", Operation: "GetCallerIdentity"}: func(ctx context.Context, c sdk.Config) error {
		_, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, nil)
		return err
	},
	{Service: "iam", Operation: "ListRoles"}: func(ctx context.Context, c sdk.Config) error {
		_, err := iam.NewFromConfig(c).ListRoles(ctx, nil)
		return err
	},
}

func TestProxyDelaysEachCall(t *testing.T) {
	p := newProxy(t)
	config := awstest.Config(t, p.URL())
	const delay = 100 * time.Millisecond
	p.Delay(delay)
	began := time.Now()
	for range 2 {
		if err := read[aws.Call{Service: "sts", Operation: "GetCallerIdentity"}](t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("two calls took %v, want %v at least", took, 2*delay)
	}
}

func TestProxyPassesAndRecordsEveryService(t *testing.T) {
	for call, do := range read {
		t.Run(call.Service, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			config := awstest.Config(t, p.URL())
			for range 2 {
				if err := do(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
			want := []awstest.Call{
				{Call: call, Nth: 1, Status: http.StatusOK},
				{Call: call, Nth: 2, Status: http.StatusOK},
			}
			if diff := cmp.Diff(want, withoutBodies(p.Calls())); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func withoutBodies(calls []awstest.Call) []awstest.Call {
	for i := range calls {
		calls[i].Body = nil
	}
	return calls
}

// What a caller learns of a fault is what it would learn of AWS.
func TestFaultsLookReal(t *testing.T) {
	throttled := map[string]string{
		"dynamodb": "ThrottlingException", "sqs": "RequestThrottled", "ec2": "RequestLimitExceeded",
		"sts": "Throttling", "iam": "Throttling",
	}
	for call, do := range read {
		for _, kind := range awstest.Kinds {
			t.Run(call.Service+" "+kind.String(), func(t *testing.T) {
				t.Parallel()
				p := newProxy(t)
				p.Inject(awstest.Fault{Service: call.Service, Kind: kind})
				err := do(t.Context(), once(t, p.URL()))
				var timeout net.Error
				switch {
				case err == nil:
					t.Fatal("no error")
				case kind == awstest.Throttle:
					if aws.Code(err) != throttled[call.Service] || aws.ClassOf(err) != aws.Throttled {
						t.Errorf("code %s, class %v: %v", aws.Code(err), aws.ClassOf(err), err)
					}
				case aws.ClassOf(err) != aws.Retry:
					t.Errorf("class %v, want that of what may go well another time: %v", aws.ClassOf(err), err)
				case (kind == awstest.InternalError) != (aws.Code(err) != ""):
					t.Errorf("code %q: %v", aws.Code(err), err)
				case (kind == awstest.Timeout) != (errors.As(err, &timeout) && timeout.Timeout()):
					t.Errorf("not as it should be about time: %v", err)
				}
			})
		}
	}
}

// The answer to a call may be lost before or after it took effect.
func TestOnlyLostAfterSuccessTakesEffect(t *testing.T) {
	for _, kind := range awstest.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			struck := p.Inject(awstest.Fault{Operation: "CreateQueue", Kind: kind})
			client := sqs.NewFromConfig(once(t, p.URL()))
			if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: sdk.String("made")}); err == nil {
				t.Fatal("no error")
			}
			if c := <-struck; c.Fault != kind || c.Operation != "CreateQueue" {
				t.Errorf("struck %v by %v", c.Call, c.Fault)
			}
			listed, err := client.ListQueues(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if made := len(listed.QueueUrls) == 1; made != (kind == awstest.LostAfterSuccess) {
				t.Errorf("queues after the fault: %q", listed.QueueUrls)
			}
		})
	}
}

// How a test goes through all calls: first a clean run, then one for each of
// its calls and each kind of fault.
func TestEveryCallInTurn(t *testing.T) {
	run := func(t *testing.T, p *awstest.Proxy) error {
		config := awstest.Config(t, p.URL())
		for _, call := range []aws.Call{
			{Service: "dynamodb", Operation: "ListTables"},
			{Service: "sqs", Operation: "ListQueues"},
			{Service: "dynamodb", Operation: "ListTables"},
		} {
			if err := read[call](t.Context(), config); err != nil {
				return err
			}
		}
		return nil
	}
	clean := newProxy(t)
	if err := run(t, clean); err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, call := range clean.Calls() {
		for _, kind := range awstest.Kinds {
			p := newProxy(t)
			p.Inject(awstest.Fault{Service: call.Service, Operation: call.Operation, Nth: call.Nth, Kind: kind})
			if err := run(t, p); err != nil {
				t.Errorf("%v, the %d., %v: %v", call.Call, call.Nth, kind, err)
			}
			calls := p.Calls()
			if len(calls) != len(clean.Calls())+1 {
				t.Errorf("%v, the %d., %v: %d calls, want one more than without a fault", call.Call, call.Nth, kind, len(calls))
			}
			runs++
		}
	}
	if want := 3 * len(awstest.Kinds); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

func TestFaultFromACallOnUntilHealed(t *testing.T) {
	p := newProxy(t)
	config := once(t, p.URL())
	p.Inject(awstest.Fault{From: 2, Kind: awstest.InternalError})
	for i, fails := range []bool{false, true, true, false} {
		if i == 3 {
			p.Heal()
		}
		if err := read[aws.Call{Service: "sts", Operation: "GetCallerIdentity"}](t.Context(), config); (err != nil) != fails {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

func TestHangsUntilTheCallerGivesUp(t *testing.T) {
	p := newProxy(t)
	struck := p.Inject(awstest.Fault{Kind: awstest.Hang})
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-struck
		giveUp()
	}()
	if _, err := dynamodb.NewFromConfig(once(t, p.URL())).ListTables(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the caller gave up", err)
	}
}

func TestHooksMakeUpForTheEmulator(t *testing.T) {
	p := newProxy(t)
	p.Handle("ec2", "DescribeFleets", func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err != nil || form.Get("MaxResults") != "7" {
			t.Errorf("form %v, %v", form, err)
		}
		answer := forward(awstest.WithForm(r, url.Values{"Action": {"DescribeVpcs"}, "Version": form["Version"]}))
		if answer.Status != http.StatusOK {
			t.Errorf("DescribeVpcs: %s", answer.Body)
		}
		awstest.Fail(w, r, http.StatusBadRequest, "InsufficientInstanceCapacity", "none left")
	})
	client := ec2.NewFromConfig(once(t, p.URL()))
	_, err := client.DescribeFleets(t.Context(), &ec2.DescribeFleetsInput{MaxResults: sdk.Int32(7)})
	if aws.ClassOf(err) != aws.Capacity {
		t.Errorf("%v, want what the hook said", err)
	}
	if calls := p.Calls(); len(calls) != 1 || calls[0].Status != http.StatusBadRequest {
		t.Errorf("calls %v, want the product's alone", calls)
	}
}

// A daemon of its own has no header for moto, and may have any credentials.
func TestProgramsShareTheWorldOfTheProxysTest(t *testing.T) {
	p := newProxy(t)
	ours := awstest.Config(t, p.URL())
	createTable(t, dynamodb.NewFromConfig(ours), "shared")

	for _, variable := range p.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "ASIAOFAROLE")
	theirs, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed, err := dynamodb.NewFromConfig(theirs).ListTables(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shared"}, listed.TableNames); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	who, err := sts.NewFromConfig(theirs).GetCallerIdentity(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := account(t, p.URL()); *who.Account != want {
		t.Errorf("account %s, want %s", *who.Account, want)
	}
}

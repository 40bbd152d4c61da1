package tracing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/tracing"
	"github.com/remuda-ci/remuda/internal/tracing/collectortest"
)

// inBody is in the bodies of the requests of TestCallsToAWS, and in its answers.
const inBody = "not-for-traces"

// awsCalls are a write and a launch, as a store and a cloud make them.
type awsCalls struct {
	dynamodb *dynamodb.Client
	ec2      *ec2.Client
}

// update writes an attribute; where must is set, only if the row has another one.
func (c awsCalls) update(ctx context.Context, must bool) error {
	in := &dynamodb.UpdateItemInput{
		TableName: sdk.String("hosts"), Key: map[string]dynamodbtypes.AttributeValue{"id": &dynamodbtypes.AttributeValueMemberS{Value: inBody}},
		UpdateExpression:          sdk.String("SET jit = :jit"),
		ExpressionAttributeValues: map[string]dynamodbtypes.AttributeValue{":jit": &dynamodbtypes.AttributeValueMemberS{Value: inBody}},
	}
	if must {
		in.ConditionExpression = sdk.String("attribute_exists(nowhere)")
	}
	_, err := c.dynamodb.UpdateItem(ctx, in)
	return err
}

// launch asks for hosts of a launch template that is not there.
func (c awsCalls) launch(ctx context.Context) error {
	_, err := c.ec2.CreateFleet(ctx, &ec2.CreateFleetInput{
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: sdk.String(inBody), Version: sdk.String("1")},
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1)},
		Type:                        ec2types.FleetTypeInstant,
	})
	return err
}

func newAWSCalls(t *testing.T, proxy *awstest.Proxy) awsCalls {
	t.Helper()
	cfg := awstest.Config(t, proxy.URL())
	tracing.AWS(&cfg)
	c := awsCalls{dynamodb.NewFromConfig(cfg), ec2.NewFromConfig(cfg)}
	_, err := c.dynamodb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: sdk.String("hosts"), BillingMode: dynamodbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: sdk.String("id"), AttributeType: dynamodbtypes.ScalarAttributeTypeS}},
		KeySchema:            []dynamodbtypes.KeySchemaElement{{AttributeName: sdk.String("id"), KeyType: dynamodbtypes.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantSpan is the span of a call to AWS without its request id, which is another each time.
type wantSpan struct {
	name, region, method, errorType string
	status                          int
}

// TestCallsToAWS: a call of an operation is a span in the trace of its run, with all its tries, whether AWS does it, refuses it or does not answer.
// It has nothing of the bodies, and no credential. A call of no operation has no span.
func TestCallsToAWS(t *testing.T) {
	t.Parallel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	f := begin(t, c, nil)
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	proxy.Route("dynamodb", awstest.DynamoDB(t))
	calls := newAWSCalls(t, proxy) // which makes a call of no operation
	ctx, ended := f.Operations().Begin(t.Context(), fleet.Subject{Name: "provision", Repository: "acme/app", RunID: "9000000001", RunAttempt: 2})
	proxy.Inject(awstest.Fault{Service: "dynamodb", Operation: "UpdateItem", Nth: 1, Kind: awstest.Throttle})
	if err := calls.update(ctx, false); err != nil { // its second try
		t.Fatal(err)
	}
	for name, err := range map[string]error{"a write that is refused": calls.update(ctx, true), "a launch that is refused": calls.launch(ctx)} {
		if err == nil {
			t.Errorf("%s did not fail", name)
		}
	}
	proxy.Inject(awstest.Fault{Service: "dynamodb", Kind: awstest.LostBeforeSend})
	if err := calls.update(ctx, false); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("without an answer: %v", err)
	}
	ended(nil)
	end(t, f)

	spans := c.Spans(t, 5)
	provision, of := collectortest.Find(t, spans, "provision"), first(tracing.OfRun("9000000001", 2))
	var got []wantSpan
	for _, s := range spans {
		texts := s.Texts()
		texts["the status"] = s.Status.Message
		for key, text := range texts {
			for _, secret := range []string{inBody, "AWS4-HMAC", "Credential"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s of %s is %q", key, s.Name, text)
				}
			}
		}
		if s.SpanID == provision.SpanID {
			continue
		}
		if s.ParentSpanID != provision.SpanID || s.TraceID != of.TraceID().String() {
			t.Errorf("%s is below %s in trace %s, want %s in that of the run", s.Name, s.ParentSpanID, s.TraceID, provision.SpanID)
		}
		got = append(got, awsSpan(t, s))
	}
	want := []wantSpan{
		{"DynamoDB.UpdateItem", "us-east-1", "DynamoDB/UpdateItem", "", 0},
		{"DynamoDB.UpdateItem", "us-east-1", "DynamoDB/UpdateItem", "ConditionalCheckFailedException", collectortest.StatusError},
		{"EC2.CreateFleet", "us-east-1", "EC2/CreateFleet", "InvalidLaunchTemplateName.NotFoundException", collectortest.StatusError},
		{"DynamoDB.UpdateItem", "us-east-1", "DynamoDB/UpdateItem", "_OTHER", collectortest.StatusError},
	}
	order := func(a, b wantSpan) int { return strings.Compare(a.name+a.errorType, b.name+b.errorType) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(wantSpan{})); diff != "" {
		t.Errorf("spans of calls (-want +got):\n%s", diff)
	}
}

// awsSpan is what the span of a call to AWS says. Where AWS answered, it has the id of its request.
func awsSpan(t *testing.T, s collectortest.Span) wantSpan {
	t.Helper()
	texts := s.Texts()
	if answered := texts["error.type"] != "_OTHER"; answered != (texts["aws.request_id"] != "") {
		t.Errorf("the request id of %s is %q: %v", s.Name, texts["aws.request_id"], texts)
	}
	known := []string{"rpc.system.name", "rpc.method", "cloud.region", "aws.request_id", "error.type"}
	for key := range texts {
		if !slices.Contains(known, key) {
			t.Errorf("%s has an attribute %s", s.Name, key)
		}
	}
	if texts["rpc.system.name"] != "aws-api" {
		t.Errorf("%s is a call of %q", s.Name, texts["rpc.system.name"])
	}
	return wantSpan{s.Name, texts["cloud.region"], texts["rpc.method"], texts["error.type"], s.Status.Code}
}

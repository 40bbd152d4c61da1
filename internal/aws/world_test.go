package aws_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
)

// What must be in no text.
const (
	secretKey    = "very-secret-access-key"
	sessionToken = "very-secret-session-token"
)

// load sets up the SDK as a daemon would, from an environment that is known,
// with the credentials in it.
func load(t *testing.T, o aws.Options) sdk.Config {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_SESSION_TOKEN", sessionToken)
	return loadBare(t, o)
}

// loadBare finds no credentials anywhere.
func loadBare(t *testing.T, o aws.Options) sdk.Config {
	t.Helper()
	bareEnvironment(t)
	if o.Region == "" {
		o.Region = "eu-west-1"
	}
	c, err := aws.Load(t.Context(), o)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func bareEnvironment(t *testing.T) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
	} {
		t.Setenv(name, value)
	}
}

// once tries a call a single time.
func once() sdk.Retryer { return aws.NewRetryer(aws.RetryOptions{Tries: 1}) }

// answer is what a service says.
type answer struct {
	status int
	header map[string]string
	body   string
}

// errorOf is an error as a service sends it. A code of SQS may be followed by
// the older name of the error, which goes into a header.
func errorOf(service string, status int, code, message string) answer {
	shape, older, _ := strings.Cut(code, " ")
	switch service {
	case "dynamodb":
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, shape, message)
		return answer{status: status, header: checksum(body), body: body}
	case "sqs":
		a := answer{status: status, body: fmt.Sprintf(`{"__type":"com.amazonaws.sqs#%s","message":%q}`, shape, message)}
		if older != "" {
			a.header = map[string]string{"X-Amzn-Query-Error": older + ";Sender"}
		}
		return a
	case "ec2":
		return answer{status: status, body: fmt.Sprintf(
			`<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>`, code, message)}
	default: // IAM and STS
		return answer{status: status, body: fmt.Sprintf(
			`<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r-1</RequestId></ErrorResponse>`, code, message)}
	}
}

// checksum is what DynamoDB sends with every answer.
func checksum(body string) map[string]string {
	return map[string]string{"X-Amz-Crc32": fmt.Sprint(crc32.ChecksumIEEE([]byte(body)))}
}

// good is an answer that the operations below understand.
var good = answer{status: http.StatusOK, header: checksum(`{}`), body: `{}`}

func (a answer) write(w http.ResponseWriter) {
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body) // the caller sees what is missing
}

// serve answers every request alike.
func serve(t *testing.T, a answer) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { a.write(w) }))
	t.Cleanup(server.Close)
	return server.URL
}

// transport answers without a network: with each of answers in turn, then well.
// An answer without a status is a connection that breaks.
type transport struct {
	answers []answer
	tries   int
}

func (p *transport) Do(*http.Request) (*http.Response, error) {
	a := good
	if p.tries < len(p.answers) {
		a = p.answers[p.tries]
	}
	p.tries++
	if a.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	w := httptest.NewRecorder()
	a.write(w)
	return w.Result(), nil
}

// calls are one or more operations of each service, named as IAM does.
var calls = map[string]func(context.Context, sdk.Config) error{
	"dynamodb:PutItem": func(ctx context.Context, c sdk.Config) error {
		_, err := dynamodb.NewFromConfig(c).PutItem(ctx, &dynamodb.PutItemInput{
			TableName: sdk.String("remuda-instances"), Item: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "v"}},
		})
		return err
	},
	"dynamodb:CreateTable": func(ctx context.Context, c sdk.Config) error {
		_, err := dynamodb.NewFromConfig(c).CreateTable(ctx, &dynamodb.CreateTableInput{TableName: sdk.String("remuda-instances")})
		return err
	},
	"dynamodb:UpdateContinuousBackups": func(ctx context.Context, c sdk.Config) error {
		_, err := dynamodb.NewFromConfig(c).UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName:                        sdk.String("remuda-instances"),
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: sdk.Bool(true)},
		})
		return err
	},
	"sqs:ReceiveMessage": func(ctx context.Context, c sdk.Config) error {
		_, err := sqs.NewFromConfig(c).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: sdk.String("https://example.com/1/q")})
		return err
	},
	"sqs:CreateQueue": func(ctx context.Context, c sdk.Config) error {
		_, err := sqs.NewFromConfig(c).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: sdk.String("q")})
		return err
	},
	"sqs:DeleteMessageBatch": func(ctx context.Context, c sdk.Config) error {
		_, err := sqs.NewFromConfig(c).DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: sdk.String("https://example.com/1/q"),
			Entries:  []sqstypes.DeleteMessageBatchRequestEntry{{Id: sdk.String("0"), ReceiptHandle: sdk.String("h")}},
		})
		return err
	},
	"ec2:CreateFleet": func(ctx context.Context, c sdk.Config) error {
		_, err := ec2.NewFromConfig(c).CreateFleet(ctx, &ec2.CreateFleetInput{
			LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: sdk.String("remuda"), Version: sdk.String("1")},
			}},
			TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1)},
		})
		return err
	},
	"ec2:RunInstances": func(ctx context.Context, c sdk.Config) error { // which lacks what it must have
		_, err := ec2.NewFromConfig(c).RunInstances(ctx, &ec2.RunInstancesInput{})
		return err
	},
	"ec2:TerminateInstances": func(ctx context.Context, c sdk.Config) error {
		_, err := ec2.NewFromConfig(c).TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
		return err
	},
	"iam:GetInstanceProfile": func(ctx context.Context, c sdk.Config) error {
		_, err := iam.NewFromConfig(c).GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: sdk.String("p")})
		return err
	},
}

// TestCallsAreLegal: the services here are of these tests and accept everything, so each call is held against its service's model once.
func TestCallsAreLegal(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_ = call(t.Context(), awstest.Unanswered(t)) // an empty answer is one that JSON cannot have
		})
	}
}

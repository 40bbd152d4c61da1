package aws_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// anyOf are the classes of error that an adapter may return.
var anyOf = []error{
	lifecycle.ErrUnavailable, lifecycle.ErrConflict, lifecycle.ErrNotFound, lifecycle.ErrExists, lifecycle.ErrRefused,
}

// wantIs: err is of the one class and of no other.
func wantIs(t *testing.T, err, want error) {
	t.Helper()
	for _, class := range anyOf {
		if got := errors.Is(err, class); got != errors.Is(want, class) {
			t.Errorf("%q: errors.Is(%v) is %v, want only %v", err, class, got, want)
		}
	}
}

func wantNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{secretKey, sessionToken} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is in the text %q", text)
		}
	}
}

func TestErrors(t *testing.T) {
	const (
		user      = "User: arn:aws:sts::1:assumed-role/controld/i-1"
		valid     = "; give valid credentials: an instance profile, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
		clock     = "; check the credentials, and whether the clock of this machine is right"
		signature = "The request signature we calculated does not match the signature you provided."
	)
	tests := map[string]struct {
		call    string
		status  int
		code    string
		message string
		class   aws.Class
		is      error
		// text follows "do it: " and the class.
		text string
	}{
		"a table that is throttled": {
			"dynamodb:PutItem", 400, "ProvisionedThroughputExceededException", "The level is exceeded.", aws.Throttled, lifecycle.ErrUnavailable,
			"dynamodb:PutItem: ProvisionedThroughputExceededException: The level is exceeded",
		},
		"an account that is throttled": {
			"dynamodb:PutItem", 400, "ThrottlingException", "Rate exceeded", aws.Throttled, lifecycle.ErrUnavailable,
			"dynamodb:PutItem: ThrottlingException: Rate exceeded",
		},
		"too many tables at once": {
			"dynamodb:CreateTable", 400, "LimitExceededException", "Too many", aws.Throttled, lifecycle.ErrUnavailable,
			"dynamodb:CreateTable: LimitExceededException: Too many",
		},
		"a fault of DynamoDB": {
			"dynamodb:PutItem", 500, "InternalServerError", "", aws.Retry, lifecycle.ErrUnavailable,
			"dynamodb:PutItem: InternalServerError",
		},
		"an unknown fault of a server": {
			"dynamodb:PutItem", 503, "Novelty", "Later", aws.Retry, lifecycle.ErrUnavailable, "dynamodb:PutItem: Novelty: Later",
		},
		"an unknown fault of ours": {
			"dynamodb:PutItem", 400, "Novelty", "No", aws.Terminal, lifecycle.ErrRefused, "dynamodb:PutItem: Novelty: No",
		},
		"too many calls, in a new word": {
			"dynamodb:PutItem", 429, "Novelty", "Slower", aws.Throttled, lifecycle.ErrUnavailable, "dynamodb:PutItem: Novelty: Slower",
		},
		"a condition that does not hold": {
			"dynamodb:PutItem", 400, "ConditionalCheckFailedException", "The conditional request failed", aws.Lost, lifecycle.ErrConflict,
			"dynamodb:PutItem: ConditionalCheckFailedException: The conditional request failed",
		},
		"a write beside another": {
			"dynamodb:PutItem", 400, "TransactionConflictException", "", aws.Retry, lifecycle.ErrUnavailable,
			"dynamodb:PutItem: TransactionConflictException",
		},
		"no such table": {
			"dynamodb:PutItem", 400, "ResourceNotFoundException", "Requested resource not found", aws.Gone, lifecycle.ErrNotFound,
			"dynamodb:PutItem: ResourceNotFoundException: Requested resource not found",
		},
		"a table that exists": {
			"dynamodb:CreateTable", 400, "ResourceInUseException", "Table already exists: t", aws.Exists, lifecycle.ErrExists,
			"dynamodb:CreateTable: ResourceInUseException: Table already exists: t",
		},
		"backups of a table that was just made": {
			"dynamodb:UpdateContinuousBackups", 400, "ContinuousBackupsUnavailableException", "Backups are being enabled", aws.Retry,
			lifecycle.ErrUnavailable, "dynamodb:UpdateContinuousBackups: ContinuousBackupsUnavailableException: Backups are being enabled",
		},
		"a call that is wrong": {
			"dynamodb:PutItem", 400, "ValidationException", "One or more parameter values were invalid", aws.Terminal, lifecycle.ErrRefused,
			"dynamodb:PutItem: ValidationException: One or more parameter values were invalid",
		},
		"a policy is missing": {
			"dynamodb:PutItem", 400, "AccessDeniedException", user + " is not authorized to perform: dynamodb:PutItem on resource: t", aws.Denied,
			lifecycle.ErrRefused, "dynamodb:PutItem: AccessDeniedException: " + user +
				" is not authorized to perform: dynamodb:PutItem on resource: t; allow the action dynamodb:PutItem (docs/iam)",
		},
		"an unknown key": {
			"dynamodb:PutItem", 400, "UnrecognizedClientException", "The security token included in the request is invalid.", aws.Expired,
			lifecycle.ErrRefused, "dynamodb:PutItem: UnrecognizedClientException: The security token included in the request is invalid" + valid,
		},
		"a session that is over": {
			"dynamodb:PutItem", 400, "ExpiredTokenException", "The security token included in the request is expired", aws.Expired,
			lifecycle.ErrRefused, "dynamodb:PutItem: ExpiredTokenException: The security token included in the request is expired" + valid,
		},
		"a wrong signature, told at length": {
			"dynamodb:PutItem", 403, "InvalidSignatureException",
			signature + "\n\nThe Canonical String for this request should have been\n'x-amz-security-token:" + sessionToken + "'", aws.Expired,
			lifecycle.ErrRefused, "dynamodb:PutItem: InvalidSignatureException: " + strings.TrimSuffix(signature, ".") + clock,
		},

		"no such queue": {
			"sqs:ReceiveMessage", 400, "QueueDoesNotExist AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.", aws.Gone,
			lifecycle.ErrNotFound, "sqs:ReceiveMessage: AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist",
		},
		"no such queue, in one word": {
			"sqs:ReceiveMessage", 400, "QueueDoesNotExist", "", aws.Gone, lifecycle.ErrNotFound, "sqs:ReceiveMessage: QueueDoesNotExist",
		},
		"a queue with other attributes": {
			"sqs:CreateQueue", 400, "QueueNameExists QueueAlreadyExists", "It exists", aws.Exists, lifecycle.ErrExists,
			"sqs:CreateQueue: QueueAlreadyExists: It exists",
		},
		"a queue that was just deleted": {
			"sqs:CreateQueue", 400, "QueueDeletedRecently AWS.SimpleQueueService.QueueDeletedRecently", "Wait 60 seconds", aws.Retry,
			lifecycle.ErrUnavailable, "sqs:CreateQueue: AWS.SimpleQueueService.QueueDeletedRecently: Wait 60 seconds",
		},
		"a queue that is throttled": {
			"sqs:ReceiveMessage", 403, "RequestThrottled", "Rate exceeded", aws.Throttled, lifecycle.ErrUnavailable,
			"sqs:ReceiveMessage: RequestThrottled: Rate exceeded",
		},
		"a full queue": {
			"sqs:ReceiveMessage", 403, "OverLimit", "", aws.Throttled, lifecycle.ErrUnavailable, "sqs:ReceiveMessage: OverLimit",
		},
		"a batch without a policy": {
			"sqs:DeleteMessageBatch", 403, "AccessDeniedException AccessDenied", "Access to the resource is denied.", aws.Denied,
			lifecycle.ErrRefused, "sqs:DeleteMessageBatch: AccessDenied: Access to the resource is denied; allow the action sqs:DeleteMessage (docs/iam)",
		},
		"a key that may not be used": {
			"sqs:ReceiveMessage", 400, "KmsAccessDenied KMS.AccessDeniedException", user + " is not authorized to perform: kms:Decrypt on resource: k",
			aws.Denied, lifecycle.ErrRefused, "sqs:ReceiveMessage: KMS.AccessDeniedException: " + user +
				" is not authorized to perform: kms:Decrypt on resource: k; allow the action kms:Decrypt (docs/iam)",
		},

		"no machines of a type": {
			"ec2:CreateFleet", 500, "InsufficientInstanceCapacity", "There is no Spot capacity available", aws.Capacity, lifecycle.ErrRefused,
			"ec2:CreateFleet: InsufficientInstanceCapacity: There is no Spot capacity available",
		},
		"a quota": {
			"ec2:CreateFleet", 400, "VcpuLimitExceeded", "You have requested more vCPU capacity", aws.Capacity, lifecycle.ErrRefused,
			"ec2:CreateFleet: VcpuLimitExceeded: You have requested more vCPU capacity",
		},
		"a full subnet": {
			"ec2:CreateFleet", 400, "InsufficientFreeAddressesInSubnet", "Not enough addresses", aws.Capacity, lifecycle.ErrRefused,
			"ec2:CreateFleet: InsufficientFreeAddressesInSubnet: Not enough addresses",
		},
		"too many calls of EC2": {
			"ec2:CreateFleet", 503, "RequestLimitExceeded", "Request limit exceeded.", aws.Throttled, lifecycle.ErrUnavailable,
			"ec2:CreateFleet: RequestLimitExceeded: Request limit exceeded",
		},
		"an instance that is gone": {
			"ec2:TerminateInstances", 400, "InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist", aws.Gone, lifecycle.ErrNotFound,
			"ec2:TerminateInstances: InvalidInstanceID.NotFound: The instance ID 'i-1' does not exist",
		},
		"no such launch template": {
			"ec2:CreateFleet", 400, "InvalidLaunchTemplateName.NotFoundException", "No template", aws.Gone, lifecycle.ErrNotFound,
			"ec2:CreateFleet: InvalidLaunchTemplateName.NotFoundException: No template",
		},
		"a token used twice": {
			"ec2:CreateFleet", 400, "IdempotentParameterMismatch", "Other arguments", aws.Terminal, lifecycle.ErrRefused,
			"ec2:CreateFleet: IdempotentParameterMismatch: Other arguments",
		},
		"a blocked account": {
			"ec2:CreateFleet", 400, "Blocked", "This account is currently blocked", aws.Terminal, lifecycle.ErrRefused,
			"ec2:CreateFleet: Blocked: This account is currently blocked",
		},
		"an action within a call": {
			"ec2:CreateFleet", 403, "UnauthorizedOperation", "You are not authorized to perform this operation. " + user +
				" is not authorized to perform: iam:PassRole on resource: r. Encoded authorization failure message: " + strings.Repeat("x", 2000), aws.Denied,
			lifecycle.ErrRefused, "ec2:CreateFleet: UnauthorizedOperation: You are not authorized to perform this operation. " + user +
				" is not authorized to perform: iam:PassRole on resource: r; allow the action iam:PassRole (docs/iam)",
		},
		"credentials that EC2 does not know": {
			"ec2:CreateFleet", 401, "AuthFailure", "AWS was not able to validate the provided access credentials", aws.Expired, lifecycle.ErrRefused,
			"ec2:CreateFleet: AuthFailure: AWS was not able to validate the provided access credentials" + valid,
		},
		"a clock that is wrong": {
			"ec2:CreateFleet", 400, "RequestExpired", "Request has expired.", aws.Expired, lifecycle.ErrRefused,
			"ec2:CreateFleet: RequestExpired: Request has expired" + clock,
		},
		"no such profile": {
			"iam:GetInstanceProfile", 404, "NoSuchEntity", "Instance Profile p cannot be found.", aws.Gone, lifecycle.ErrNotFound,
			"iam:GetInstanceProfile: NoSuchEntity: Instance Profile p cannot be found",
		},
		"a fault of IAM": {
			"iam:GetInstanceProfile", 500, "ServiceFailure", "", aws.Retry, lifecycle.ErrUnavailable, "iam:GetInstanceProfile: ServiceFailure",
		},
		"a service that talks without end": {
			"dynamodb:PutItem", 400, "ValidationException", strings.Repeat("é", 1000), aws.Terminal, lifecycle.ErrRefused,
			"dynamodb:PutItem: ValidationException: " + strings.Repeat("é", 289) + "…",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			service, _, _ := strings.Cut(test.call, ":")
			c := load(t, aws.Options{Retryer: once()})
			c.BaseEndpoint = sdk.String(serve(t, errorOf(service, test.status, test.code, test.message)))
			err := calls[test.call](t.Context(), c)
			if class := aws.ClassOf(err); class != test.class {
				t.Errorf("class %d, want %d, of %v", class, test.class, err)
			}
			wrapped := aws.Wrap("do it", err)
			wantIs(t, wrapped, test.is)
			want := "do it: " + test.is.Error() + ": " + test.text
			if errors.Is(test.is, lifecycle.ErrUnavailable) {
				want = "do it: " + test.text
			}
			if diff := cmp.Diff(want, wrapped.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if code := aws.Code(wrapped); code != aws.Code(err) || !strings.HasSuffix(test.code, code) {
				t.Errorf("Code of the wrapped error: %q, of the error %q, want the last of %q", code, aws.Code(err), test.code)
			}
			wantNoSecret(t, wrapped.Error())
		})
	}
}

func TestErrorsWithoutAnAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx      context.Context
		endpoint string
		call     string
		class    aws.Class
		is       error
		text     []string
	}{
		"nothing listens": {
			t.Context(), closed, "sqs:ReceiveMessage", aws.Retry, lifecycle.ErrUnavailable, []string{"do it: sqs:ReceiveMessage: dial tcp 127.0.0.1:", "refused"},
		},
		"the caller has gone": {
			cancelled, closed, "sqs:ReceiveMessage", aws.Retry, context.Canceled, []string{"do it: sqs:ReceiveMessage: ", "canceled"},
		},
		"a proxy answers": {
			t.Context(), serve(t, answer{status: 502, body: "<html>Bad Gateway</html>"}), "dynamodb:PutItem", aws.Retry, lifecycle.ErrUnavailable,
			[]string{"do it: dynamodb:PutItem: status 502 with an answer that cannot be read"},
		},
		"a call that lacks a field": {
			t.Context(), closed, "ec2:RunInstances", aws.Terminal, lifecycle.ErrRefused,
			[]string{"do it: refused: ec2:RunInstances: ", "missing required field, RunInstancesInput.MaxCount"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := load(t, aws.Options{Retryer: once()})
			c.BaseEndpoint = &test.endpoint
			err := calls[test.call](test.ctx, c)
			if class := aws.ClassOf(err); class != test.class {
				t.Errorf("class %d, want %d", class, test.class)
			}
			wrapped := aws.Wrap("do it", err)
			if !errors.Is(wrapped, test.is) {
				t.Errorf("%v is not %v", wrapped, test.is)
			}
			for _, part := range test.text {
				if !strings.Contains(wrapped.Error(), part) {
					t.Errorf("%q is not in %q", part, wrapped)
				}
			}
			if len(wrapped.Error()) > 200 {
				t.Errorf("not brief: %v", wrapped)
			}
		})
	}
}

// TestUnknownHost: no name is looked up; a wrong region looks like this.
func TestUnknownHost(t *testing.T) {
	err := aws.Wrap("read it", &net.DNSError{Err: "no such host", Name: "sqs.eu-wset-1.amazonaws.com", IsNotFound: true})
	wantIs(t, err, lifecycle.ErrUnavailable)
	if want := "read it: lookup sqs.eu-wset-1.amazonaws.com: no such host; check the region and the endpoint"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestNoCredentials(t *testing.T) {
	c := loadBare(t, aws.Options{})
	c.BaseEndpoint = sdk.String(serve(t, good))
	err := calls["dynamodb:PutItem"](t.Context(), c)
	var missing *aws.CredentialsError
	if !errors.As(err, &missing) || missing.Before {
		t.Fatalf("got %v, want a CredentialsError", err)
	}
	wrapped := aws.Wrap("read it", err)
	wantIs(t, wrapped, lifecycle.ErrRefused)
	const start = "read it: refused: dynamodb:PutItem: no AWS credentials: "
	if text := wrapped.Error(); !strings.HasPrefix(text, start) || !strings.HasSuffix(text, "; "+aws.Remedy(err)) ||
		!strings.Contains(aws.Remedy(err), "AWS_PROFILE") {
		t.Errorf("text %q", text)
	}
}

// TestCredentialsThatAreRefused: it is the call for credentials that failed, so
// the action to allow is not that of the call they are for.
func TestCredentialsThatAreRefused(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(sessionToken), 0o600); err != nil {
		t.Fatal(err)
	}
	bareEnvironment(t)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/controld")
	t.Setenv("AWS_ENDPOINT_URL_STS", serve(t, errorOf("sts", 403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")))
	c, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1", Retryer: once()})
	if err != nil {
		t.Fatal(err)
	}
	c.BaseEndpoint = sdk.String(serve(t, good))
	err = calls["dynamodb:PutItem"](t.Context(), c)
	if class := aws.ClassOf(err); class != aws.Expired {
		t.Errorf("class %d of %v", class, err)
	}
	text := aws.Wrap("read it", err).Error()
	if !strings.Contains(text, "Not authorized to perform sts:AssumeRoleWithWebIdentity") || strings.Contains(text, "allow the action") {
		t.Errorf("text %q", text)
	}
	wantNoSecret(t, text)
}

// TestCredentialsThatAreLate: what gave credentials before will do so again.
func TestCredentialsThatAreLate(t *testing.T) {
	bareEnvironment(t)
	var asked int
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":"AKIDTEST","SecretAccessKey":%q,"Token":%q,"Expiration":"2000-01-01T00:00:00Z"}`, secretKey, sessionToken)
	}))
	t.Cleanup(source.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", source.URL)
	c, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1", Retryer: once()})
	if err != nil {
		t.Fatal(err)
	}
	c.BaseEndpoint = sdk.String(serve(t, good))
	if err := calls["dynamodb:PutItem"](t.Context(), c); err != nil {
		t.Fatalf("with credentials: %v", err)
	}
	err = calls["dynamodb:PutItem"](t.Context(), c)
	var missing *aws.CredentialsError
	if !errors.As(err, &missing) || !missing.Before {
		t.Fatalf("got %v, want a CredentialsError of a source that gave some before", err)
	}
	wrapped := aws.Wrap("read it", err)
	wantIs(t, wrapped, lifecycle.ErrUnavailable)
	wantNoSecret(t, wrapped.Error())
}

func TestRefused(t *testing.T) {
	c := load(t, aws.Options{Retryer: once()})
	c.BaseEndpoint = sdk.String(serve(t, errorOf("dynamodb", 400, "ResourceNotFoundException", "Requested resource not found")))
	_, err := dynamodb.NewFromConfig(c).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: sdk.String("t")})
	refused := aws.Refused("read table t", err, "run Refresh")
	wantIs(t, refused, lifecycle.ErrRefused)
	const want = "read table t: refused: dynamodb:DescribeTable: ResourceNotFoundException: Requested resource not found; run Refresh"
	if refused.Error() != want {
		t.Errorf("got %q, want %q", refused, want)
	}
	if got := aws.Refused("do it", errors.New("no"), "").Error(); got != "do it: refused: no" {
		t.Errorf("without a remedy: %q", got)
	}
}

func TestOfFleetCode(t *testing.T) {
	tests := map[string]aws.Class{
		"InsufficientInstanceCapacity": aws.Capacity, "UnfulfillableCapacity": aws.Capacity, "MaxSpotInstanceCountExceeded": aws.Capacity,
		"Unsupported": aws.Capacity, "UnsupportedOperation": aws.Capacity, "InvalidFleetConfiguration": aws.Capacity, "InvalidFleetConfig": aws.Capacity,
		"MaxFleetCountExceeded": aws.Capacity, "AuthFailure.ServiceLinkedRoleCreationNotPermitted": aws.Capacity,
		"InvalidAMIID.NotFound": aws.Gone, "InvalidSubnetID.NotFound": aws.Gone, "UnauthorizedOperation": aws.Denied,
		"RequestLimitExceeded": aws.Throttled, "InternalError": aws.Retry, "InvalidParameterValue": aws.Terminal, "": aws.Terminal,
	}
	for code, want := range tests {
		if got := aws.OfFleetCode(code); got != want {
			t.Errorf("%q: class %d, want %d", code, got, want)
		}
	}
}

func TestAction(t *testing.T) {
	tests := map[aws.Call]string{
		{Service: "sqs", Operation: "SendMessageBatch"}:             "sqs:SendMessage",
		{Service: "sqs", Operation: "ChangeMessageVisibilityBatch"}: "sqs:ChangeMessageVisibility",
		{Service: "sqs", Operation: "GetQueueUrl"}:                  "sqs:GetQueueUrl",
		{Service: "dynamodb", Operation: "BatchGetItem"}:            "dynamodb:BatchGetItem",
	}
	for call, want := range tests {
		if got := call.Action(); got != want {
			t.Errorf("%v: action %q, want %q", call, got, want)
		}
	}
	if got := aws.Action(errors.New("no call")); got != "" {
		t.Errorf("action %q of no call", got)
	}
}

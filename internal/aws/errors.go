package aws

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Wrap makes an error of an SDK call one of lifecycle's, by its class, with a remedy where there is one:
//
//	Retry, Throttled    ErrUnavailable
//	Lost                ErrLost
//	Gone                ErrNotFound
//	Exists              ErrExists
//	Denied, Expired,    ErrRefused
//	Capacity, Terminal
//
// What is the verb and the object, such as "read instance i-1". An adapter for which a class means something
// else looks at ClassOf first: a missing table is Gone, and is no missing row.
func Wrap(what string, err error) error {
	switch ClassOf(err) {
	case Retry, Throttled:
		return &lifecycle.UnavailableError{What: what, Err: brief(err, Remedy(err))}
	case Lost:
		return classed(what, err, lifecycle.ErrConflict, "")
	case Gone:
		return classed(what, err, lifecycle.ErrNotFound, "")
	case Exists:
		return classed(what, err, lifecycle.ErrExists, "")
	}
	return Refused(what, err, Remedy(err))
}

// Refused returns an error that lasts until an operator does what remedy says. remedy may be empty.
func Refused(what string, err error, remedy string) error {
	return classed(what, err, lifecycle.ErrRefused, remedy)
}

// classed has both the class and the cause in its chain.
func classed(what string, err, class error, remedy string) error {
	return fmt.Errorf("%s: %w: %w", what, class, brief(err, remedy))
}

// Remedy says what to do about an error, or nothing.
func Remedy(err error) string {
	switch ClassOf(err) {
	case Denied:
		if action := missingAction(err); action != "" {
			return "allow the action " + action + " (docs/iam)"
		}
		return "allow the action (docs/iam)"
	case Expired:
		if clockCodes[Code(err)] {
			return "check the credentials, and whether the clock of this machine is right"
		}
		return "give valid credentials: an instance profile, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return "check the region and the endpoint"
	}
	return ""
}

// clockCodes are those that a wrong clock gives, too.
var clockCodes = map[string]bool{
	"RequestExpired": true, "RequestTimeTooSkewed": true, "SignatureDoesNotMatch": true, "InvalidSignatureException": true,
}

// Action is the action of the call that failed, as IAM names it; empty if the error is of no call.
func Action(err error) string {
	if call, ok := callOf(err); ok {
		return call.Action()
	}
	return ""
}

// callOf is the outermost call: within it, the SDK may have made another to get credentials.
func callOf(err error) (Call, bool) {
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return Call{}, false
	}
	return Call{iamService(op.Service()), op.Operation()}, true
}

// refusedAction is how a service names the action that no policy allows. It is another than the call's own
// where one call needs several: CreateFleet needs ec2:RunInstances and iam:PassRole.
var refusedAction = regexp.MustCompile(`is not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)`)

// missingAction returns the action to allow. It reads a text, which is acceptable here
// since the result is only shown to people.
func missingAction(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		if named := refusedAction.FindStringSubmatch(api.ErrorMessage()); named != nil {
			return named[1]
		}
	}
	return Action(err)
}

// briefError says what the service said, without the request ids and the steps
// of the SDK around it, and keeps the chain.
type briefError struct {
	error
	text string
}

func (e briefError) Error() string { return e.text }
func (e briefError) Unwrap() error { return e.error }

// brief is the call, what went wrong, and what to do about it.
func brief(err error, remedy string) error {
	text := strings.TrimSuffix(bounded(reason(err)), ".")
	if call, ok := callOf(err); ok {
		text = call.String() + ": " + text
	}
	if remedy != "" {
		text += "; " + remedy
	}
	return briefError{err, text}
}

func reason(err error) string {
	var (
		credentials *CredentialsError
		api         smithy.APIError
		sending     *url.Error
		answer      *smithyhttp.ResponseError
		op          *smithy.OperationError
	)
	switch {
	case errors.As(err, &credentials):
		return credentials.Error()
	case errors.As(err, &api) && api.ErrorMessage() == "":
		return api.ErrorCode()
	case errors.As(err, &api):
		return api.ErrorCode() + ": " + sayable(api.ErrorMessage())
	case errors.As(err, &sending):
		return sending.Err.Error()
	case errors.As(err, &answer): // of a proxy, or cut off
		return fmt.Sprintf("status %d with an answer that cannot be read", answer.HTTPStatusCode())
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// sayable cuts off what is not for everybody's eyes. What a service says of a wrong signature goes on with
// the whole request, session token and all; what EC2 says of a missing permission, with an encoded blob.
func sayable(message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	message, _, _ = strings.Cut(message, " Encoded authorization failure message:")
	return message
}

// Reason is a message that came inside an answer, as people may read it: one
// bounded line, without what only AWS can decode.
func Reason(message string) string { return bounded(sayable(message)) }

// longestReason is enough for the sentence of a service that names a caller, an
// action and a resource by their ARNs.
const longestReason = 600

// bounded is the text in one line, and cut where it is too long.
func bounded(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + "…"
	}
	return text
}

// Class is what an error of AWS means for the caller. It is derived from the error's
// code, never from its text.
type Class int

// The classes. Retry is that of everything unknown: a call that may go well
// another time and may have taken effect.
const (
	Retry     Class = iota
	Throttled       // too many calls: later, and slower
	Lost            // the condition of a write did not hold: another writer was faster
	Gone            // what the call names does not exist (any more)
	Exists          // what the call makes exists already
	Capacity        // EC2 or the account's quota has no room for the machines
	Denied          // the caller may not: a policy is missing
	Expired         // the credentials are missing, expired or unknown
	Terminal        // the call itself is wrong and will not become right
)

// codes are the error codes that mean something to us. A code that is not here
// is Retry if the server failed and Terminal if it says the client did.
//
// Sources: "Common errors" and the operations' errors in the API references of
// DynamoDB, ECS, SQS (whose errors have a second, older name that is sent beside the
// first and wins), STS and IAM; "Error codes for the Amazon EC2 API".
var codes = map[string]Class{
	// Every service.
	"Throttling": Throttled, "ThrottlingException": Throttled, "ThrottledException": Throttled,
	"RequestLimitExceeded": Throttled, "RequestThrottled": Throttled, "RequestThrottledException": Throttled,
	"TooManyRequestsException": Throttled, "BandwidthLimitExceeded": Throttled, "SlowDown": Throttled,
	"RequestTimeout": Retry, "RequestTimeoutException": Retry, "InternalError": Retry, "InternalFailure": Retry,
	"ServiceUnavailable": Retry, "Unavailable": Retry,
	"AccessDenied": Denied, "AccessDeniedException": Denied, "UnauthorizedOperation": Denied, "NotAuthorized": Denied,
	"ExpiredToken": Expired, "ExpiredTokenException": Expired, "RequestExpired": Expired, "AuthFailure": Expired,
	"InvalidClientTokenId": Expired, "UnrecognizedClientException": Expired, "SignatureDoesNotMatch": Expired,
	"InvalidSignatureException": Expired, "IncompleteSignature": Expired, "IncompleteSignatureException": Expired,
	"MissingAuthenticationToken": Expired, "MissingAuthenticationTokenException": Expired, "RequestTimeTooSkewed": Expired,
	"OptInRequired": Terminal, "Blocked": Terminal, "PendingVerification": Terminal, // the account, and no policy

	// DynamoDB. LimitExceededException is about how many tables and indexes are being made at once.
	"ProvisionedThroughputExceededException": Throttled, "LimitExceededException": Throttled,
	"TransactionInProgressException": Retry, "TransactionConflictException": Retry,
	"ReplicatedWriteConflictException": Retry, "InternalServerError": Retry,
	"ContinuousBackupsUnavailableException": Retry, // a table that was just made
	"ConditionalCheckFailedException":       Lost,
	"ResourceNotFoundException":             Gone, "TableNotFoundException": Gone,
	"ResourceInUseException": Exists, "TableAlreadyExistsException": Exists,

	// SQS.
	"QueueDoesNotExist": Gone, "AWS.SimpleQueueService.NonExistentQueue": Gone,
	"QueueNameExists": Exists, "QueueAlreadyExists": Exists,
	"QueueDeletedRecently": Retry, "AWS.SimpleQueueService.QueueDeletedRecently": Retry, // for 60 s
	"OverLimit":              Throttled, // 120,000 messages are in flight
	"ReceiptHandleIsInvalid": Gone, "MessageNotInflight": Gone, "AWS.SimpleQueueService.MessageNotInflight": Gone,
	"KmsThrottled": Throttled, "KMS.ThrottlingException": Throttled,
	"KmsAccessDenied": Denied, "KMS.AccessDeniedException": Denied,

	// EC2. A capacity code may come from the call or from within a fleet.
	"EC2ThrottledException":        Throttled,
	"InsufficientInstanceCapacity": Capacity, "InsufficientHostCapacity": Capacity, "InsufficientCapacity": Capacity,
	"InsufficientReservedInstanceCapacity": Capacity, "InsufficientFreeAddressesInSubnet": Capacity,
	"InsufficientAddressCapacity": Capacity, "InsufficientVolumeCapacity": Capacity,
	"SpotMaxPriceTooLow": Capacity, "UnfulfillableCapacity": Capacity,
	"InstanceLimitExceeded": Capacity, "VcpuLimitExceeded": Capacity,
	"MaxSpotInstanceCountExceeded": Capacity, "MaxSpotFleetRequestCountExceeded": Capacity, "MaxFleetCountExceeded": Capacity,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": Capacity, // of spot, in an account that has never used it
	"VolumeLimitExceeded":                               Capacity, "MaxIOPSLimitExceeded": Capacity, "NetworkInterfaceLimitExceeded": Capacity,
	"InvalidInstanceID.NotFound": Gone, "InvalidInstanceID.Malformed": Gone,
	"InvalidLaunchTemplateId.NotFound": Gone, "InvalidLaunchTemplateId.VersionNotFound": Gone,
	"InvalidLaunchTemplateName.NotFoundException": Gone, "InvalidAMIID.NotFound": Gone, "InvalidAMIID.Unavailable": Gone,
	"InvalidSubnetID.NotFound": Gone, "InvalidSubnet": Gone, "InvalidGroup.NotFound": Gone, "InvalidSecurityGroupID.NotFound": Gone,
	"InvalidLaunchTemplateName.AlreadyExistsException": Exists,
	"IdempotentParameterMismatch":                      Terminal,

	// ECS, whose ServerException is Retry and ClientException Terminal by their status.
	"ClusterNotFoundException": Gone, "ServiceNotFoundException": Gone, "ServiceNotActiveException": Gone,

	// IAM.
	"NoSuchEntity": Gone, "NoSuchEntityException": Gone,
}

// ClassOf is the class of an error of an SDK call.
func ClassOf(err error) Class {
	var credentials *CredentialsError
	if errors.As(err, &credentials) {
		return credentials.class() // before the code: it is that of the call for credentials
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ofTransport(err)
	}
	if class, known := codes[api.ErrorCode()]; known {
		return class
	}
	return ofStatus(err, api)
}

// OfFleetCode is the class of a code that CreateFleet gives for one of its offerings. There, what a call
// could not do anywhere is only not to be had of this offering: another type or zone may do.
func OfFleetCode(code string) Class {
	switch code {
	case "Unsupported", "UnsupportedOperation", "InvalidFleetConfiguration", "InvalidFleetConfig":
		return Capacity
	}
	if class, known := codes[code]; known {
		return class
	}
	return Terminal
}

// Code is the error's code; empty if no service gave one.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// ofTransport: no service answered, or none that speaks as one of AWS does.
func ofTransport(err error) Class {
	var invalid smithy.InvalidParamsError
	var serialization *smithy.SerializationError
	if errors.As(err, &invalid) || errors.As(err, &serialization) {
		return Terminal // it was never sent, and never will be
	}
	return Retry
}

// ofStatus is the class of an unknown code.
func ofStatus(err error, api smithy.APIError) Class {
	var response *awshttp.ResponseError
	switch {
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusTooManyRequests:
		return Throttled
	case errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError,
		api.ErrorFault() == smithy.FaultServer:
		return Retry
	}
	return Terminal
}

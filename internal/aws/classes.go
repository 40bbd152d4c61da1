package aws

import (
	"errors"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Class is what an error of AWS means for whoever called. It is read off the
// error's code, never off its text.
type Class int

// The classes. Retry is that of everything unknown: a call that may go well
// another time and may have taken effect.
const (
	Retry     Class = iota
	Throttled       // too many calls: later, and slower
	Lost            // the condition of a write did not hold: somebody was faster
	Gone            // what the call names does not exist (any more)
	Exists          // what the call makes exists already
	Capacity        // EC2 or the account's quota has no room for the machines
	Denied          // the caller may not: a policy is missing
	Expired         // the credentials are missing, expired or of nobody
	Terminal        // the call itself is wrong and will not become right
)

// codes are the error codes that mean something to us. A code that is not here
// is Retry if the server failed and Terminal if it says the client did.
// Sources: the API references of DynamoDB, SQS, EC2 ("Error codes"), STS, IAM.
var codes = map[string]Class{
	// Every service.
	"ThrottlingException": Throttled, "Throttling": Throttled, "RequestLimitExceeded": Throttled,
	"TooManyRequestsException": Throttled, "RequestThrottled": Throttled, "RequestThrottledException": Throttled,
	"BandwidthLimitExceeded": Throttled, "SlowDown": Throttled, "EC2ThrottledException": Throttled,
	"RequestTimeout": Retry, "RequestTimeoutException": Retry, "InternalError": Retry, "InternalFailure": Retry,
	"ServiceUnavailable": Retry, "Unavailable": Retry,
	"AccessDenied": Denied, "AccessDeniedException": Denied, "UnauthorizedOperation": Denied, "NotAuthorized": Denied,
	"AWS.SimpleQueueService.AccessDenied": Denied, "OptInRequired": Denied, "Blocked": Denied,
	"ExpiredToken": Expired, "ExpiredTokenException": Expired, "RequestExpired": Expired, "AuthFailure": Expired,
	"InvalidClientTokenId": Expired, "UnrecognizedClientException": Expired, "SignatureDoesNotMatch": Expired,
	"InvalidSignatureException": Expired, "IncompleteSignature": Expired, "MissingAuthenticationToken": Expired,
	"MissingAuthenticationTokenException": Expired,

	// DynamoDB.
	"ProvisionedThroughputExceededException": Throttled, "LimitExceededException": Throttled,
	"TransactionInProgressException": Retry, "InternalServerError": Retry,
	"ConditionalCheckFailedException": Lost, "TransactionCanceledException": Lost,
	"ResourceNotFoundException": Gone, "TableNotFoundException": Gone,
	"ResourceInUseException": Exists, "TableAlreadyExistsException": Exists,

	// SQS.
	"QueueDoesNotExist": Gone, "AWS.SimpleQueueService.NonExistentQueue": Gone, "QueueDeletedRecently": Retry,
	"QueueNameExists": Exists, "OverLimit": Throttled, "KmsThrottled": Throttled, "KMS.ThrottlingException": Throttled,
	"ReceiptHandleIsInvalid": Gone, "MessageNotInflight": Gone,

	// EC2. A capacity code may come from the call or from within a fleet.
	"InsufficientInstanceCapacity": Capacity, "InsufficientHostCapacity": Capacity, "InsufficientCapacity": Capacity,
	"InsufficientReservedInstanceCapacity": Capacity, "InsufficientFreeAddressesInSubnet": Capacity,
	"InsufficientAddressCapacity": Capacity, "SpotMaxPriceTooLow": Capacity, "UnfulfillableCapacity": Capacity,
	"InstanceLimitExceeded": Capacity,
	"VcpuLimitExceeded":     Capacity, "MaxSpotInstanceCountExceeded": Capacity, "MaxSpotFleetRequestCountExceeded": Capacity,
	"VolumeLimitExceeded": Capacity, "MaxIOPSLimitExceeded": Capacity,
	"InvalidInstanceID.NotFound": Gone, "InvalidInstanceID.Malformed": Gone,
	"InvalidLaunchTemplateId.NotFound": Gone, "InvalidLaunchTemplateId.VersionNotFound": Gone,
	"InvalidLaunchTemplateName.NotFoundException": Gone, "InvalidAMIID.NotFound": Gone, "InvalidAMIID.Unavailable": Gone,
	"InvalidSubnetID.NotFound": Gone, "InvalidSubnet.NotFound": Gone, "InvalidGroup.NotFound": Gone,
	"InvalidLaunchTemplateName.AlreadyExistsException": Exists,
	"IdempotentParameterMismatch":                      Terminal,

	// IAM.
	"NoSuchEntity": Gone, "NoSuchEntityException": Gone,
}

// ClassOf is the class of an error of an SDK call.
func ClassOf(err error) Class {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ofTransport(err)
	}
	if class, known := codes[api.ErrorCode()]; known {
		return class
	}
	return ofStatus(err, api)
}

// OfFleetCode is the class of a code that CreateFleet gives for one of its
// offerings. There, what a call could not do anywhere is only not to be had of
// this offering: another type or zone may do.
func OfFleetCode(code string) Class {
	switch code {
	case "Unsupported", "UnsupportedOperation", "InvalidFleetConfiguration":
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

// ofTransport: no service answered. A call that was never signed for lack of
// credentials will not go well before there are some.
func ofTransport(err error) Class {
	var credentials *CredentialsError
	if errors.As(err, &credentials) {
		return Expired
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

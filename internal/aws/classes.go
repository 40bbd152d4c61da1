package aws

import (
	"errors"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

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
	"MaxSpotInstanceCountExceeded": Capacity, "MaxSpotFleetRequestCountExceeded": Capacity,
	"VolumeLimitExceeded": Capacity, "MaxIOPSLimitExceeded": Capacity, "NetworkInterfaceLimitExceeded": Capacity,
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

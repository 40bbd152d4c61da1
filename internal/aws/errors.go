package aws

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

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

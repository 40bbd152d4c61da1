package aws

import (
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Wrap makes an error of an SDK call one of lifecycle's, by its class, with a
// remedy where there is one:
//
//	Retry, Throttled    ErrUnavailable
//	Lost                ErrLost
//	Gone                ErrNotFound
//	Exists              ErrExists
//	Denied, Expired,    ErrRefused
//	Capacity, Terminal
//
// What is the verb and the object, such as "read instance i-1". An adapter for
// which a class means something else looks at ClassOf first: a missing table is
// Gone, and is no missing row.
func Wrap(what string, err error) error {
	switch ClassOf(err) {
	case Retry, Throttled:
		return &lifecycle.UnavailableError{What: what, Err: err}
	case Lost:
		return classed(what, err, lifecycle.ErrLost)
	case Gone:
		return classed(what, err, lifecycle.ErrNotFound)
	case Exists:
		return classed(what, err, lifecycle.ErrExists)
	}
	return Refused(what, err, Remedy(err))
}

// Refused is an error that stays until somebody does what remedy says; it may
// be empty.
func Refused(what string, err error, remedy string) error {
	if remedy == "" {
		return classed(what, err, lifecycle.ErrRefused)
	}
	return fmt.Errorf("%s: %w: %w; %s", what, lifecycle.ErrRefused, brief(err), remedy)
}

// classed has both the class and the cause in its chain.
func classed(what string, err, class error) error {
	return fmt.Errorf("%s: %w: %w", what, class, brief(err))
}

// Remedy says what to do about an error, or nothing.
func Remedy(err error) string {
	switch ClassOf(err) {
	case Denied:
		if action := Action(err); action != "" {
			return "allow the action " + action + " (docs/iam)"
		}
		return "allow the action (docs/iam)"
	case Expired:
		return "give valid credentials: an instance profile, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	}
	return ""
}

// Action is the action of the call that failed, as IAM names it; empty if the
// error is of no call.
func Action(err error) string {
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return ""
	}
	return Call{iamService(op.Service()), op.Operation()}.String()
}

// briefError says what the service said, without the request ids and the steps
// of the SDK around it, and keeps the chain.
type briefError struct {
	error
	text string
}

func (e briefError) Error() string { return e.text }
func (e briefError) Unwrap() error { return e.error }

func brief(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	text := api.ErrorCode()
	if action := Action(err); action != "" {
		text = action + ": " + text
	}
	if message := api.ErrorMessage(); message != "" {
		text += ": " + message
	}
	return briefError{err, text}
}

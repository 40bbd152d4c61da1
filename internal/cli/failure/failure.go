// Package failure has the errors that people read: what failed, on which thing, what to do about it, and the exit code.
package failure

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Code is an exit code of the command (docs/cli.md#exit-codes).
type Code int

// The exit codes.
const (
	OK          Code = 0
	Failed      Code = 1   // anything that has no code of its own
	Usage       Code = 2   // a command line, or a value in it, that cannot be understood
	NotFound    Code = 3   // no such host, run or context
	NotAllowed  Code = 4   // no credentials, wrong ones, or a role that is too small
	Unavailable Code = 5   // no connection, no answer in time, or a dependency of controld is down
	NoCapacity  Code = 6   // too few hosts by the deadline, or a limit is reached
	Conflict    Code = 7   // the state of the thing does not allow it, such as a hold
	Interrupted Code = 130 // Ctrl-C, as shells have it: 128 and the number of SIGINT
)

// Error is an error with its exit code.
type Error struct {
	Code Code
	// Doing is what failed, such as "list hosts".
	Doing string
	// Err is why.
	Err error
	// Remedy says what to do about it, in whole sentences; empty where nothing is known.
	Remedy string
}

// Error says what failed and why, on one line. The remedy is for a line of its own.
func (e *Error) Error() string {
	if e.Doing == "" {
		return e.Err.Error()
	}
	return e.Doing + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Misused is the error for a command line that cannot be understood.
func Misused(format string, args ...any) *Error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// interrupted is the error of a context that was canceled, as people know it.
type interrupted struct{ error }

func (interrupted) Error() string   { return "interrupted" }
func (i interrupted) Unwrap() error { return i.error }

// Of is the error of anything that was done; an Error stays what it is.
func Of(doing string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	code := Failed
	if errors.Is(err, context.Canceled) {
		code, err = Interrupted, interrupted{err}
	}
	return &Error{Code: code, Doing: doing, Err: err}
}

// WithRemedy gives an error of one code another remedy: a command may know more about it than the code says.
func WithRemedy(err error, code Code, remedy string) error {
	var known *Error
	if errors.As(err, &known) && known.Code == code {
		known.Remedy = remedy
	}
	return err
}

// CodeOf is the exit code of an error.
func CodeOf(err error) Code {
	var known *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &known):
		return known.Code
	}
	return Failed
}

// row is what a code of gRPC means to a person.
type row struct {
	code   Code
	remedy string
}

var rows = map[codes.Code]row{
	codes.InvalidArgument:    {Usage, ""},
	codes.NotFound:           {NotFound, "`remuda ps --all` lists the hosts of the last 24 hours, `remuda runs` the runs, and `remuda pools` the pools."},
	codes.Unauthenticated:    {NotAllowed, "Give a client certificate (--cert, --key) or a fresh token (--token-file) to `remuda login`; docs/callers.md has the rules."},
	codes.PermissionDenied:   {NotAllowed, "Roles of operators are in `callers.operators`, rules of repositories in `callers.repositories` (docs/callers.md)."},
	codes.Unavailable:        {Unavailable, "Try again; `remuda doctor` looks at the connection."},
	codes.DeadlineExceeded:   {Unavailable, "--timeout gives it more time; `remuda doctor` looks at the connection."},
	codes.ResourceExhausted:  {NoCapacity, ""},
	codes.FailedPrecondition: {Conflict, ""},
	codes.Aborted:            {Conflict, ""},
	codes.AlreadyExists:      {Conflict, ""},
	codes.Canceled:           {Interrupted, ""},
	codes.Unimplemented:      {Failed, "This controld is older than this remuda, or it is another service; `remuda doctor` says which."},
}

// FromStatus is the error of a call.
func FromStatus(doing string, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	known, ok := rows[s.Code()]
	if !ok {
		known.code = Failed
	}
	for _, detail := range s.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok && retry.GetRetryDelay() != nil {
			known.remedy = fmt.Sprintf("Try again in %s.", retry.GetRetryDelay().AsDuration())
		}
	}
	return &Error{Code: known.code, Doing: doing, Err: errors.New(s.Message()), Remedy: known.remedy}
}

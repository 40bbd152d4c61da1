package awstest

import (
	"cmp"
	"net/http"

	"github.com/remuda-ci/remuda/internal/aws"
)

// Kind is how a call goes wrong.
type Kind int

// The kinds. With the last three, the caller cannot know whether the call took effect.
const (
	NoFault Kind = iota
	// Throttle refuses the call with the code that its service really uses.
	Throttle
	// InternalError is the service's own failure, with status 500.
	InternalError
	// LostBeforeSend closes the connection; the emulator hears nothing.
	LostBeforeSend
	// Timeout lets the time of one try run out; the emulator hears nothing.
	// For clients of Config that is at once. Others wait as with Hang.
	Timeout
	// Hang gives no answer before the caller gives up; the emulator hears nothing.
	Hang
	// LostAfterSuccess lets the emulator carry out the call and closes the connection before its answer.
	LostAfterSuccess
)

func (k Kind) String() string {
	return [...]string{"no fault", "throttle", "internal error", "lost before send", "timeout", "hang", "lost after success"}[k]
}

// Kinds are those that end by themselves, for tests that try them all.
var Kinds = []Kind{Throttle, InternalError, LostBeforeSend, Timeout, LostAfterSuccess}

// Fault says which calls go wrong, and how.
type Fault struct {
	// Service and Operation that calls must be of; empty: of any.
	Service, Operation string
	// Nth, from 1, is the only one of these calls that goes wrong. It counts
	// those, each try for itself, that came since the fault was injected.
	Nth int
	// From, if Nth is 0, is the first of all that go wrong; 0: every one.
	From int
	Kind Kind
}

func (f Fault) matches(call aws.Call) bool {
	return (f.Service == "" || f.Service == call.Service) && (f.Operation == "" || f.Operation == call.Operation)
}

func (f Fault) strikes(n int) bool {
	if f.Nth > 0 {
		return n == f.Nth
	}
	return n >= f.From
}

// serviceErrors are how the services say what a fault says. Sources: their API references, "Common errors"
// and the pages on request throttling. Those of "" are newer services'.
var serviceErrors = map[Kind]map[string]serviceError{
	Throttle: {
		"dynamodb": {http.StatusBadRequest, "ThrottlingException"}, // of tables with on-demand capacity
		"sqs":      {http.StatusBadRequest, "RequestThrottled"},
		"ec2":      {http.StatusServiceUnavailable, "RequestLimitExceeded"},
		"ecs":      {http.StatusBadRequest, "ThrottlingException"},
		"sts":      {http.StatusBadRequest, "Throttling"},
		"iam":      {http.StatusBadRequest, "Throttling"},
		"":         {http.StatusBadRequest, "ThrottlingException"},
	},
	InternalError: {
		"dynamodb": {http.StatusInternalServerError, "InternalServerError"},
		"sqs":      {http.StatusInternalServerError, "InternalFailure"},
		"ec2":      {http.StatusInternalServerError, "InternalError"},
		"ecs":      {http.StatusInternalServerError, "ServerException"},
		"sts":      {http.StatusInternalServerError, "InternalFailure"},
		"iam":      {http.StatusInternalServerError, "ServiceFailure"},
		"":         {http.StatusInternalServerError, "InternalServerException"},
	},
}

type serviceError struct {
	status int
	code   string
}

// refusal is the answer to a call that its service refuses; nil if the fault is of the connection.
func refusal(r *http.Request, call aws.Call, kind Kind) *Answer {
	codes, ok := serviceErrors[kind]
	if !ok {
		return nil
	}
	e := cmp.Or(codes[call.Service], codes[""])
	return Failure(r, e.status, e.code, "injected: "+kind.String())
}

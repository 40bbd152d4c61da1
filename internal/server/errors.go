package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// retryAfter is the delay that callers get when nothing better is known.
const retryAfter = 2 * time.Second

// invalid is INVALID_ARGUMENT for the violations that protovalidate found, each with its field and its rule.
func invalid(err error) error {
	var violations *protovalidate.ValidationError
	if !errors.As(err, &violations) {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	var texts []string
	details := &errdetails.BadRequest{}
	for _, v := range violations.Violations {
		field, rule := protovalidate.FieldPathString(v.Proto.GetField()), v.Proto.GetMessage()
		if strings.HasPrefix(v.Proto.GetRuleId(), "duration.") {
			rule = seconds.ReplaceAllStringFunc(rule, readable)
		}
		if field == "" { // a rule over several fields names the first itself
			field, rule, _ = strings.Cut(rule, ": ")
		}
		texts = append(texts, field+": "+rule)
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: field, Description: rule})
	}
	return withDetails(status.Error(codes.InvalidArgument, strings.Join(texts, "; ")), details)
}

// seconds are how protovalidate writes every duration.
var seconds = regexp.MustCompile(`\b[0-9]+s\b`)

// readable is a number of seconds as the docs have it: 86400s is 24h.
func readable(duration string) string {
	d, err := time.ParseDuration(duration)
	switch {
	case err != nil || d == 0:
		return duration
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return duration
}

// toStatus maps the errors of the use-cases to the codes of docs/interfaces.md#grpc-fleetservice.
func (s *service) toStatus(ctx context.Context, err error) error {
	var (
		bad      *fleet.InvalidError
		short    *fleet.ShortError
		released *fleet.ReleasedError
		held     *fleet.HeldError
		allHeld  *fleet.FleetHeldError
		state    *fleet.StateError
		cut      *fleet.CutError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return badField(bad.Field, bad.Rule)
	case errors.Is(err, lifecycle.ErrPageToken):
		return badField("page_token", lifecycle.ErrPageToken.Error())
	case errors.As(err, &short):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.As(err, &released):
		return status.Error(codes.Aborted, err.Error())
	case errors.As(err, &held), errors.As(err, &allHeld), errors.As(err, &state), errors.Is(err, model.ErrStaleAttempt):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, fleet.ErrSpecDiffers), errors.Is(err, workqueue.ErrPayloadDiffers):
		return status.Error(codes.AlreadyExists, err.Error())
	case errors.Is(err, lifecycle.ErrNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.As(err, &cut) && !errors.Is(err, lifecycle.ErrUnavailable):
		return status.Error(status.FromContextError(cut.Cause).Code(), cut.Error())
	case ctx.Err() != nil && errors.Is(err, lifecycle.ErrUnavailable):
		cut = &fleet.CutError{Cause: ctx.Err(), Away: err}
		return status.Error(status.FromContextError(ctx.Err()).Code(), cut.Error())
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, lifecycle.ErrUnavailable):
		return unavailable(err)
	case errors.Is(err, lifecycle.ErrRefused):
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	id := randomID()
	s.log.Error("call failed", logkey.ID, id, logkey.Error, err)
	return status.Errorf(codes.Internal, "internal error %s: see controld's log", id)
}

// unavailable tells the caller when to try again.
func unavailable(err error) error {
	after := retryAfter
	var why *lifecycle.UnavailableError
	if errors.As(err, &why) && why.RetryAfter > 0 {
		after = why.RetryAfter
	}
	return withDetails(status.Error(codes.Unavailable, err.Error()), &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}

// badField is INVALID_ARGUMENT for one field and the rule that it broke.
func badField(field, rule string) error { return violation(codes.InvalidArgument, field, rule) }

// violation is an error of a code that names a field and the rule that it broke.
func violation(code codes.Code, field, rule string) error {
	return withDetails(status.Error(code, field+": "+rule), &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: rule}},
	})
}

// withDetails adds a detail to the error of a call.
func withDetails(err error, detail protoadapt.MessageV1) error {
	detailed, detailErr := status.Convert(err).WithDetails(detail)
	if detailErr != nil {
		return err
	}
	return detailed.Err()
}

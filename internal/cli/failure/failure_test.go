package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
)

func TestFromStatus(t *testing.T) {
	for code, want := range map[codes.Code]failure.Code{
		codes.InvalidArgument: 2, codes.NotFound: 3, codes.Unauthenticated: 4, codes.PermissionDenied: 4, codes.Unavailable: 5,
		codes.DeadlineExceeded: 5, codes.ResourceExhausted: 6, codes.FailedPrecondition: 7, codes.Aborted: 7, codes.AlreadyExists: 7,
		codes.Canceled: 130, codes.Internal: 1, codes.Unimplemented: 1, codes.Unknown: 1,
	} {
		err := failure.FromStatus("list hosts", status.Error(code, "why"))
		if failure.CodeOf(err) != want || err.Error() != "list hosts: why" {
			t.Errorf("%s: got %d, %q; want %d", code, failure.CodeOf(err), err, want)
		}
	}
	if err := failure.FromStatus("list hosts", nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

func TestRetryInfo(t *testing.T) {
	s, err := status.New(codes.Unavailable, "the store is away").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	var got *failure.Error
	if !errors.As(failure.FromStatus("list hosts", s.Err()), &got) || got.Remedy != "Try again in 2s." {
		t.Errorf("got %+v", got)
	}
}

func TestOf(t *testing.T) {
	if failure.Of("x", nil) != nil {
		t.Error("no error became one")
	}
	known := failure.Misused("no such flag")
	if got := failure.Of("x", fmt.Errorf("y: %w", known)); failure.CodeOf(got) != failure.Usage {
		t.Errorf("a known error became %v", got)
	}
	if got := failure.Of("write", context.Canceled); failure.CodeOf(got) != failure.Interrupted || got.Error() != "write: interrupted" || !errors.Is(got, context.Canceled) {
		t.Errorf("got %v", got)
	}
	if failure.CodeOf(errors.New("x")) != failure.Failed || failure.CodeOf(nil) != failure.OK {
		t.Error("codes of errors from elsewhere")
	}
}

func TestWithRemedy(t *testing.T) {
	missing := failure.FromStatus("pause pool x", status.Error(codes.NotFound, "there is no pool"))
	for code, want := range map[failure.Code]string{failure.NotFound: "look again", failure.Conflict: missing.(*failure.Error).Remedy} {
		var got *failure.Error
		err := failure.FromStatus("pause pool x", status.Error(codes.NotFound, "there is no pool"))
		if !errors.As(failure.WithRemedy(err, code, "look again"), &got) || got.Remedy != want {
			t.Errorf("for code %d: got %+v, want the remedy %q", code, got, want)
		}
	}
	if failure.WithRemedy(nil, failure.NotFound, "look again") != nil {
		t.Error("no error became one")
	}
}

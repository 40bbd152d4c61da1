package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestErrorsMapToTheCodesOfTheContract(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	away := &lifecycle.UnavailableError{What: "store", RetryAfter: 3 * time.Second, Err: errors.New("disk full")}
	refused := fmt.Errorf("the repository is unknown: %w", lifecycle.ErrRefused)
	tests := map[string]struct {
		ctx  context.Context
		err  error
		code codes.Code
		says string
	}{
		"nothing":              {err: nil, code: codes.OK},
		"a bad field":          {err: &fleet.InvalidError{Field: "pool", Rule: "there is none"}, code: codes.InvalidArgument, says: "pool: there is none"},
		"a foreign token":      {err: lifecycle.ErrPageToken, code: codes.InvalidArgument, says: "page_token: "},
		"nothing there":        {err: lifecycle.ErrNotFound, code: codes.NotFound, says: "not found"},
		"another body":         {err: fleet.ErrSpecDiffers, code: codes.AlreadyExists, says: "request_id"},
		"too few":              {err: &fleet.ShortError{RequestID: "q", Ready: 1, Wanted: 3, Minimum: 2, Why: "no c6i.large"}, code: codes.ResourceExhausted, says: "request q: no c6i.large; at least 2 are needed"},
		"released meanwhile":   {err: &fleet.ReleasedError{RunID: "17"}, code: codes.Aborted, says: "17"},
		"held":                 {err: &fleet.HeldError{InstanceID: "i-1"}, code: codes.FailedPrecondition, says: "take the hold away"},
		"held as a whole":      {err: &fleet.FleetHeldError{}, code: codes.FailedPrecondition, says: "take the hold away"},
		"in another state":     {err: &fleet.StateError{InstanceID: "i-1", State: "terminated", Order: "hold"}, code: codes.FailedPrecondition, says: "terminated"},
		"away":                 {err: away, code: codes.Unavailable, says: "disk full"},
		"refused for good":     {err: refused, code: codes.FailedPrecondition, says: "the repository is unknown"},
		"refused for now":      {err: &lifecycle.UnavailableError{What: "github", Err: refused}, code: codes.Unavailable, says: "the repository is unknown"},
		"stopping":             {err: errStopping, code: codes.Unavailable, says: "stopping"},
		"the caller left":      {ctx: ended, err: context.Canceled, code: codes.Canceled},
		"the time is up":       {ctx: late, err: context.DeadlineExceeded, code: codes.DeadlineExceeded},
		"away until the end":   {ctx: late, err: away, code: codes.DeadlineExceeded, says: "disk full"},
		"away near the end":    {err: &fleet.CutError{Cause: context.DeadlineExceeded, Away: away}, code: codes.DeadlineExceeded, says: "disk full"},
		"away as they left":    {ctx: ended, err: &fleet.CutError{Cause: context.Canceled, Away: away}, code: codes.Canceled, says: "disk full"},
		"away while stopping":  {err: &fleet.CutError{Cause: errStopping, Away: away}, code: codes.Unavailable, says: "stopping"},
		"short at the end":     {ctx: late, err: &fleet.ShortError{}, code: codes.ResourceExhausted},
		"a bug":                {err: errors.New("row 7 of table remuda is upside down"), code: codes.Internal, says: "internal error "},
		"a forbidden step":     {err: &lifecycle.TransitionError{HostKey: "k"}, code: codes.Internal, says: "internal error "},
		"a lost race, somehow": {err: lifecycle.ErrConflict, code: codes.Internal, says: "internal error "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := &service{log: hclog.New(&hclog.LoggerOptions{Output: &log})}
			ctx, err := tt.ctx, tt.err
			if ctx == nil {
				ctx = t.Context()
			}
			if err != nil {
				err = fmt.Errorf("while it was done: %w", err)
			}
			got := status.Convert(s.toStatus(ctx, err))
			if got.Code() != tt.code || !strings.Contains(got.Message(), tt.says) {
				t.Errorf("got %v, want %s that says %q", got, tt.code, tt.says)
			}
			if tt.code == codes.Internal {
				id := strings.TrimSuffix(strings.TrimPrefix(got.Message(), "internal error "), ": see controld's log")
				if strings.Contains(got.Message(), tt.err.Error()) || !strings.Contains(log.String(), tt.err.Error()) || !strings.Contains(log.String(), id) {
					t.Errorf("caller got %q, log has %q: the cause belongs in the log, under the id that the caller got", got.Message(), log.String())
				}
			}
		})
	}
}

func TestUnavailableSaysWhenToRetry(t *testing.T) {
	s := &service{}
	for err, want := range map[error]time.Duration{
		&lifecycle.UnavailableError{RetryAfter: 3 * time.Second, Err: errors.New("x")}: 3 * time.Second,
		&lifecycle.UnavailableError{Err: errors.New("x")}:                              retryAfter, // it does not say when
		lifecycle.ErrUnavailable: retryAfter,
		errStopping:              time.Second, // another replica can be asked at once
	} {
		got := time.Duration(-1)
		for _, d := range status.Convert(s.toStatus(t.Context(), err)).Details() {
			if retry, ok := d.(*errdetails.RetryInfo); ok {
				got = retry.GetRetryDelay().AsDuration()
			}
		}
		if got != want {
			t.Errorf("%v: retry after %s, want %s", err, got, want)
		}
	}
}

// Rules say durations as the docs do.
func TestDurationsAreReadable(t *testing.T) {
	for seconds, want := range map[string]string{
		"86400s": "24h", "3600s": "1h", "10800s": "3h", "5400s": "90m", "60s": "1m", "90s": "90s", "0s": "0s",
	} {
		if got := readable(seconds); got != want {
			t.Errorf("%s is written as %s, want %s", seconds, got, want)
		}
	}
}

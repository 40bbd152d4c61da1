package aws

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	backoff "github.com/remuda-ci/remuda/internal/retry"
)

// The defaults of RetryOptions.
const (
	// defaultTries: with the waits below, all tries together take a few seconds. A step that still failed is
	// repeated by its operation, which knows how long it may take.
	defaultTries = 5
	// firstWait is about the time of an answer: less repeats into the same
	// hiccup, more makes a single lost packet felt.
	firstWait = 50 * time.Millisecond
	// longestWait: longer would outlast the time limits of operations; shorter
	// does not let a throttled table come up for air.
	longestWait = 2 * time.Second
)

// RetryOptions say how often and how fast a call is repeated. The zero value takes the defaults.
type RetryOptions struct {
	Tries                  int
	FirstWait, LongestWait time.Duration
	// Random is in [0, 1); nil: the process's own source.
	Random func() float64
}

// NewRetryer repeats calls that may go well another time. Waits have full jitter at every step, also at the
// cap, where the SDK's own backoff loses it and makes throttled callers come back in step. The SDK's budget
// bounds how many repetitions there may be altogether while nothing goes well.
func NewRetryer(o RetryOptions) sdk.Retryer {
	o.Tries = cmp.Or(o.Tries, defaultTries)
	o.FirstWait, o.LongestWait = cmp.Or(o.FirstWait, firstWait), cmp.Or(o.LongestWait, longestWait)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return retry.NewStandard(func(s *retry.StandardOptions) {
		s.MaxAttempts = o.Tries
		s.MaxBackoff = o.LongestWait
		s.Backoff = retry.BackoffDelayerFunc(func(try int, _ error) (time.Duration, error) { return o.wait(try), nil })
		s.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(repeats)}, s.Retryables...)
	})
}

// wait is the pause after try number try (from 1): anything up to a limit that
// doubles from FirstWait to LongestWait.
func (o RetryOptions) wait(try int) time.Duration {
	return backoff.Backoff{Base: o.FirstWait, Max: o.LongestWait}.Pause(try, o.Random())
}

// repeats lets ClassOf decide where it knows better than the SDK.
func repeats(err error) sdk.Ternary {
	var known interface{ RetryableError() bool }
	if errors.As(err, &known) || Code(err) == "" {
		// The SDK knows: a signature that failed by the clock, which it has set
		// right by now, or a transport error.
		return sdk.UnknownTernary
	}
	switch ClassOf(err) {
	case Throttled:
		return sdk.TrueTernary
	case Retry:
		return sdk.UnknownTernary
	default:
		return sdk.FalseTernary
	}
}

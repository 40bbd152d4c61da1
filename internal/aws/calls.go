package aws

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	backoff "github.com/remuda-ci/remuda/internal/retry"
)

// Call names an operation of a service, such as "dynamodb:GetItem".
type Call struct{ Service, Operation string }

func (c Call) String() string { return c.Service + ":" + c.Operation }

// Action is the action that IAM checks for the call: mostly its own name, but a
// batch of SQS is checked as its messages are.
func (c Call) Action() string {
	if c.Service == "sqs" {
		c.Operation = strings.TrimSuffix(c.Operation, "Batch")
	}
	return c.String()
}

// Reads reports whether an operation of DynamoDB is a read of rows.
func Reads(operation string) bool {
	return operation == "Query" || operation == "Scan" || strings.Contains(operation, "GetItem")
}

// Calls counts the requests that were sent, each try for itself, since each is
// paid for. It is safe for concurrent use; the zero value is ready.
type Calls struct {
	mu     sync.Mutex
	counts map[Call]int
	units  Units
	// Sent, if set before the first call, is called for each request.
	Sent func(Call)
}

// Counts is a copy of the counts so far.
func (c *Calls) Counts() map[Call]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Total is how many requests were sent so far.
func (c *Calls) Total() int {
	total := 0
	for _, n := range c.Counts() {
		total += n
	}
	return total
}

func (c *Calls) add(call Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[Call]int{}
	}
	c.counts[call]++
}

// count counts behind the retries, where each try passes.
func (c *Calls) count(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("remuda.Calls",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			call := Call{iamService(awsmiddleware.GetServiceID(ctx)), awsmiddleware.GetOperationName(ctx)}
			c.add(call)
			if c.Sent != nil {
				c.Sent(call)
			}
			return next.HandleFinalize(ctx, in)
		}), "Retry", middleware.After)
}

// iamService is the prefix of a service's actions in IAM policies: for those
// that are called here the lower case of the SDK's name.
func iamService(serviceID string) string {
	if serviceID == "ec2imds" {
		return "imds" // no service of IAM: a host's own metadata
	}
	return strings.ToLower(serviceID)
}

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

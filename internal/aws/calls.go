package aws

import (
	"context"
	"maps"
	"strings"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
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

// Calls counts the requests that were sent, each try for itself, since each is
// paid for. It is safe for concurrent use; the zero value is ready.
type Calls struct {
	mu     sync.Mutex
	counts map[Call]int
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

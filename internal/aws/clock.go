package aws

import (
	"context"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Clock remembers how far the clock of AWS is from that of this machine, by the Date of the last answer, which has whole seconds. The SDK
// corrects the time of its signatures in the same way, so calls succeed whatever the clock says, and do not show that it is wrong. It is
// safe for concurrent use; the zero value is ready.
type Clock struct{ offset atomic.Int64 }

// Offset is what has to be added to the time of this machine; 0 before the first answer.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// watch notes the time of each answer, behind the retries, where each try passes.
func (c *Clock) watch(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("remuda.Clock",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, answer, err := next.HandleFinalize(ctx, in)
			at, told := awsmiddleware.GetServerTime(answer)
			received, timed := awsmiddleware.GetResponseAt(answer)
			if told && timed {
				c.offset.Store(int64(at.Sub(received)))
			}
			return out, answer, err
		}), "Retry", middleware.After)
}

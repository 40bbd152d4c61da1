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
type Clock struct{ last atomic.Pointer[answer] }

// answer is when one was given by the clock of AWS, and when it came.
type answer struct{ given, came time.Time }

// Offset is what has to be added to the time of this machine; 0 before the first answer. A clock that has been set since the last answer shows
// at once: the time that has passed is measured apart from it.
func (c *Clock) Offset() time.Duration {
	last := c.last.Load()
	if last == nil {
		return 0
	}
	return offset(last.given, time.Since(last.came), time.Now())
}

// offset is that of a clock which says now, passed after an answer was given.
func offset(given time.Time, passed time.Duration, now time.Time) time.Duration {
	return given.Add(passed).Sub(now)
}

// longestCall is how long a call may take that shows the time: an answer may have been given when the call came in. It is half of what a clock
// may be off, and longer than a receive that waits for messages.
const longestCall = 30 * time.Second

// note remembers an answer to a call that took so long.
func (c *Clock) note(a answer, took time.Duration) {
	if took <= longestCall {
		c.last.Store(&a)
	}
}

// watch notes the time of each answer, behind the retries, where each try passes.
func (c *Clock) watch(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("remuda.Clock",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			asked := time.Now()
			out, metadata, err := next.HandleFinalize(ctx, in)
			given, told := awsmiddleware.GetServerTime(metadata)
			came, timed := awsmiddleware.GetResponseAt(metadata)
			if told && timed {
				c.note(answer{given, came}, came.Sub(asked))
			}
			return out, metadata, err
		}), "Retry", middleware.After)
}

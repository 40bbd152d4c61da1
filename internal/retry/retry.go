// Package retry waits between attempts: sleeps that a context ends, and exponential back-off with full jitter.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d, or until ctx ends. It returns nil or the cause of the end of ctx. If both have happened, which it
// returns is undefined, except that a d of at most 0 never waits and reports an ended ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Backoff is an exponential back-off with full jitter: the ceiling doubles, and each pause is drawn evenly below it, so
// that clients that failed together do not come back together. See
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
type Backoff struct {
	// Base is the ceiling after the first failure, Max that after many.
	Base, Max time.Duration
}

// Ceiling is the longest pause after so many failures (at least 1): Base·2ⁿ⁻¹, at most Max.
func (b Backoff) Ceiling(failures int) time.Duration {
	d := b.Base
	for range failures - 1 {
		if d >= b.Max {
			break
		}
		d *= 2
	}
	return min(d, b.Max)
}

// Pause draws the pause after so many failures, with the random number r of [0, 1).
func (b Backoff) Pause(failures int, r float64) time.Duration {
	return time.Duration(float64(b.Ceiling(failures)) * r)
}

// Wait sleeps for such a pause.
func (b Backoff) Wait(ctx context.Context, failures int) error {
	return Sleep(ctx, b.Pause(failures, rand.Float64()))
}

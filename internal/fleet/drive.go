package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// lastWord is how long before its caller's deadline an operation whose
// dependency is away gives up, or a quarter of the time that there was: a
// caller hears nothing that is said at its deadline or later.
const lastWord = 250 * time.Millisecond

// Drive steps an operation until it is done, fails, or ctx ends. A dependency
// that is unavailable is tried again until patience has passed without a step
// that went well. An operation that ends with ctx, or just before its deadline,
// while a dependency is away is a *CutError.
func (f *Fleet) Drive(ctx context.Context, op Op, patience time.Duration) error {
	failures := 0
	lastGood := time.Now()
	var away error // why the last step failed; nil: it went well
	giveUp := giveUpAt(ctx, lastGood)
	for {
		now := time.Now()
		p, err := op.Step(ctx, now)
		var pause time.Duration
		switch {
		case ctx.Err() != nil:
			return cut(context.Cause(ctx), away)
		case errors.Is(err, lifecycle.ErrUnavailable) && now.Sub(lastGood) < patience:
			away = err
			pause = f.backoff(failures)
			failures++
			if left := time.Until(giveUp); !giveUp.IsZero() && pause > left {
				if pause = left; left <= 0 {
					return cut(context.DeadlineExceeded, away)
				}
			}
		case err != nil:
			return err
		case p.Done:
			return nil
		default:
			failures, lastGood, away = 0, now, nil
			pause = p.Wait
			if pause > 0 {
				pause = f.jitter(pause)
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return cut(err, away)
		}
	}
}

// giveUpAt is when to give up for the sake of ctx's deadline; zero without one.
func giveUpAt(ctx context.Context, now time.Time) time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return deadline.Add(-min(lastWord, deadline.Sub(now)/4))
}

// passing reports whether what failed may go well when it is tried again: its
// dependency is away, or ctx ended. Anything else is the fault of the one thing
// that was asked for, and keeps no other.
func passing(ctx context.Context, err error) bool {
	return errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil
}

func cut(cause, away error) error {
	if away == nil {
		return cause
	}
	return &CutError{Cause: cause, Away: away}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
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

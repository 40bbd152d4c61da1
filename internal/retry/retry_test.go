package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := retry.Sleep(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("slept %s, error %v", time.Since(start), err)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		start = time.Now()
		if err := retry.Sleep(ctx, time.Hour); !errors.Is(err, why) || time.Since(start) != time.Second {
			t.Errorf("slept %s, error %v", time.Since(start), err)
		}
		start = time.Now()
		if err := retry.Sleep(t.Context(), 0); err != nil || time.Since(start) != 0 {
			t.Errorf("slept %s, error %v", time.Since(start), err)
		}
		if err := retry.Sleep(ctx, -1); !errors.Is(err, why) {
			t.Errorf("of an ended context: error %v", err)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := retry.Backoff{Base: time.Second, Max: 10 * time.Second}
	for failures, want := range []time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 6: 10} {
		if failures == 0 {
			continue
		}
		if got := b.Ceiling(failures); got != want*time.Second {
			t.Errorf("ceiling after %d failures: %s, want %s", failures, got, want*time.Second)
		}
	}
	if got := b.Ceiling(1 << 30); got != b.Max {
		t.Errorf("ceiling after very many failures: %s", got)
	}
	if low, high := b.Pause(2, 0), b.Pause(2, 0.5); low != 0 || high != time.Second {
		t.Errorf("pauses %s and %s", low, high)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := b.Wait(t.Context(), 3); err != nil || time.Since(start) >= 4*time.Second {
			t.Errorf("waited %s, error %v", time.Since(start), err)
		}
	})
}

package arrival_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// TestOf: times are kept to the millisecond, and never later than they were.
func TestOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 12, 0, 0, 1_999_999, time.UTC)
	want := &arrival.Arrival{Wait: arrival.Wait{Held: "it was full"}, AskedAt: at.Truncate(time.Millisecond), At: at.Add(2 * time.Millisecond).Truncate(time.Millisecond),
		Missed: []arrival.Miss{arrival.MissLost}}
	got := arrival.Of(at, at.Add(2*time.Millisecond), arrival.Wait{Held: "it was full"}, []arrival.Miss{arrival.MissLost})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.AskedAt.Nanosecond() != 1_000_000 || got.At.Nanosecond() != 3_000_000 {
		t.Errorf("asked for at %s, got at %s", got.AskedAt, got.At)
	}
}

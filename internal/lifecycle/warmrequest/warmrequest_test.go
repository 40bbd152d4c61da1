package warmrequest_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestNew(t *testing.T) {
	t.Parallel()
	for kind, what := range map[lifecycle.RequestKind]string{lifecycle.RequestWarm: "warm pool", lifecycle.RequestStopped: "stopped hosts of pool"} {
		q := warmrequest.New(kind, lifecycle.Spec{Pool: "ci"}, noon)
		id := warmrequest.ID(kind, "ci")
		if q.RunID != id || q.RequestID != id || q.Kind != kind || !q.DueAt.Equal(noon.Add(5*time.Minute)) || warmrequest.What(kind) != what {
			t.Errorf("%s: %+v", warmrequest.What(kind), q)
		}
	}
}

// TestChecked: the row is written twice in the time in which it is left alone, and never expires.
func TestChecked(t *testing.T) {
	t.Parallel()
	for due, want := range map[time.Duration]time.Duration{
		-time.Hour: 5 * time.Minute, 2*time.Minute + 30*time.Second - 1: 5 * time.Minute, 2*time.Minute + 30*time.Second: 2*time.Minute + 30*time.Second, 4 * time.Minute: 4 * time.Minute,
	} {
		q := warmrequest.Checked(lifecycle.Request{DueAt: noon.Add(due), ExpiresAt: noon.Add(time.Hour)}, noon)
		if !q.DueAt.Equal(noon.Add(want)) || !q.ExpiresAt.IsZero() {
			t.Errorf("due in %s: then in %s, and expires %s; want %s", due, q.DueAt.Sub(noon), q.ExpiresAt, want)
		}
	}
}

// TestLaunchFailed: the pauses double from a minute up to an hour.
func TestLaunchFailed(t *testing.T) {
	t.Parallel()
	var q lifecycle.Request
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60} {
		q = warmrequest.LaunchFailed(q, noon)
		if got := q.NotBefore.Sub(noon); got != want*time.Minute || q.Failures != n+1 {
			t.Errorf("after %d failures: a pause of %s, want %s", q.Failures, got, want*time.Minute)
		}
	}
}

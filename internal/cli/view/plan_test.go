package view_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/view"
)

// A time of day is the next one, in UTC, also of a caller elsewhere.
func TestPlanTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 23, 30, 0, 0, time.FixedZone("east", 3600)) // 22:30 in UTC
	for text, want := range map[string]string{
		"02:00": "2026-11-28T02:00:00Z", "22:31": "2026-11-27T22:31:00Z", "22:30": "2026-11-27T22:30:00Z", "22:29": "2026-11-28T22:29:00Z",
		"2026-12-01T08:00:00+01:00": "2026-12-01T07:00:00Z", "2am": "", "": "", "24:00": "", "tomorrow": "",
	} {
		got, err := view.PlanTime(text, now)
		if (err == nil) != (want != "") || err == nil && got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s (%v), want %q", text, got, err, want)
		}
	}
}

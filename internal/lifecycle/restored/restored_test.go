package restored_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
)

func TestOlder(t *testing.T) {
	for _, tt := range []struct {
		recorded, reported int64
		want               bool
	}{
		{1, 0, false}, // it has not reported yet, or nothing that can be believed
		{3, 2, false}, // it has not read the newest assignment yet
		{3, 3, false},
		{3, 4, true},
		{1, 9, true},
	} {
		if got := restored.Older(tt.recorded, tt.reported); got != tt.want {
			t.Errorf("record of assignment %d, report of %d: older %v", tt.recorded, tt.reported, got)
		}
	}
}

func TestUntil(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ recorded, pools, want time.Duration }{
		{0, 2 * time.Hour, 2 * time.Hour}, {time.Hour, 2 * time.Hour, 2 * time.Hour}, {9 * time.Hour, 2 * time.Hour, 9 * time.Hour},
	} {
		if got := restored.Until(at, tt.recorded, tt.pools); !got.Equal(at.Add(tt.want)) {
			t.Errorf("record %s, pool %s: kept for %s", tt.recorded, tt.pools, got.Sub(at))
		}
	}
}

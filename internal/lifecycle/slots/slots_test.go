package slots_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
)

// TestRequestsOfSlots: the run ids are in rows, so they stay as they are.
func TestRequestsOfSlots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slot  slots.Slot
		runID string
		spare bool
		kind  lifecycle.RequestKind
	}{
		{slots.Slot{Number: 5, JobID: 7}, "turn:ci:5", false, lifecycle.RequestForSlot},
		{slots.Slot{Number: 6}, "spare:ci:6", true, lifecycle.RequestForSpare},
	} {
		runID := tt.slot.RunID("ci")
		if runID != tt.runID || slots.IsSpare(runID) != tt.spare || tt.slot.RequestKind() != tt.kind {
			t.Errorf("slot %d: run %s, spare %t, kind %s; want %+v", tt.slot.Number, runID, slots.IsSpare(runID), tt.slot.RequestKind(), tt)
		}
	}
}

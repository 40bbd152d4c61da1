package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestScaleDownThatIsTakenBack: a host that was also drained goes on leaving.
func TestScaleDownThatIsTakenBack(t *testing.T) {
	for reason, retires := range map[string]bool{"": false, "drained by CN=ops": true} {
		r := lifecycle.Record{State: lifecycle.StateRunning}
		r.BeginScaleDown(time.Now())
		r.RetiringReason = reason
		if r.UndoScaleDown(); r.Retiring != retires || r.ScalingDown() {
			t.Errorf("reason %q: retiring %t, scaling down %t; want %t, false", reason, r.Retiring, r.ScalingDown(), retires)
		}
	}
}

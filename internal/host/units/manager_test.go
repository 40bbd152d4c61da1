package units

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStopOfAUnit checks the properties of the stop: a runner ends its job and its session itself, and what is left of other units is killed soon.
func TestStopOfAUnit(t *testing.T) {
	for name, test := range map[string]struct {
		unit Unit
		want map[string]any
	}{
		"runner": {Unit{Interrupt: 45 * time.Second}, map[string]any{
			"KillMode": "mixed", "KillSignal": int32(syscall.SIGINT), "TimeoutStopUSec": uint64(45_000_000),
		}},
		"any other": {Unit{}, map[string]any{"KillMode": "control-group", "KillSignal": nil, "TimeoutStopUSec": uint64(5_000_000)}},
	} {
		t.Run(name, func(t *testing.T) {
			test.unit.Args = []string{"/bin/true"}
			got := map[string]any{"KillSignal": nil}
			for _, p := range test.unit.properties() {
				if _, asked := test.want[p.Name]; asked {
					got[p.Name] = p.Value.Value()
				}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

package process

import (
	"testing"
	"time"
)

// TestWhenHostsAreDead: a machine on which programs start all the time always has a process whose host is not known.
func TestWhenHostsAreDead(t *testing.T) {
	type scan struct {
		after            time.Duration // since the first scan
		members, unclear int
		dead             bool
	}
	for name, all := range map[string][]scan{
		"two quiet scans":             {{0, 0, 0, false}, {5 * time.Millisecond, 0, 0, true}},
		"one process is left":         {{0, 0, 0, false}, {time.Hour, 1, 0, false}, {2 * time.Hour, 0, 0, false}, {2*time.Hour + 1, 0, 0, true}},
		"an unclear scan is not one":  {{0, 0, 0, false}, {5, 0, 1, false}, {10, 0, 0, false}, {15, 0, 0, true}},
		"others start programs":       {{0, 0, 3, false}, {unclearTimeout - 1, 0, 3, false}, {unclearTimeout, 0, 3, true}},
		"the wait is since the last":  {{0, 1, 2, false}, {unclearTimeout, 1, 2, false}, {2*unclearTimeout - 1, 0, 2, false}, {2 * unclearTimeout, 0, 2, true}},
		"a process of a host is late": {{0, 0, 3, false}, {time.Millisecond, 1, 0, false}, {unclearTimeout, 0, 3, false}},
	} {
		t.Run(name, func(t *testing.T) {
			first := time.Unix(1, 0)
			var s scans
			for i, c := range all {
				if got := s.dead(c.members, c.unclear, first.Add(c.after)); got != c.dead {
					t.Errorf("scan %d: dead is %v, want %v", i, got, c.dead)
				}
			}
		})
	}
}

package rules

import (
	"testing"
	"time"
)

// TestWhatAnOpenRequestCounts: two callers of a request may each have claimed what it has reserved, for as long as the excess needs to go.
func TestWhatAnOpenRequestCounts(t *testing.T) {
	claimed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		hosts, reserved int
		since           time.Duration // the last claim
		want            int
	}{
		"what is reserved":            {2, 2, time.Hour, 2},
		"less":                        {1, 2, time.Hour, 1},
		"two callers just now":        {4, 2, excessGoes - 1, 2},
		"an excess that stays":        {3, 2, excessGoes, 3},
		"more than two callers claim": {5, 2, 0, 5},
		"nothing is reserved":         {1, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := openRequest{reserved: test.reserved}
			for i := range test.hosts { // the last claim is not the last host
				o.add(claimed.Add(-time.Duration(i) * time.Hour))
			}
			if got := o.counted(claimed.Add(test.since)); got != test.want {
				t.Errorf("%d count, want %d", got, test.want)
			}
		})
	}
}

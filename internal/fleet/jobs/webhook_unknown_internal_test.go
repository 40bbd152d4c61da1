package jobs

import (
	"fmt"
	"testing"
	"time"
)

// TestUnknownRunsAreForgotten: what is remembered is bounded. Minutes that have passed go first, so that those to come keep their counts.
func TestUnknownRunsAreForgotten(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	deadline := now.Add(unknownFor)
	for name, test := range map[string]struct {
		others time.Time     // the minute of all others
		after  time.Duration // when acme/app has room for a question
		left   int
	}{
		"the others have passed": {now.Add(-2 * time.Minute), time.Minute, 3},
		"the others are to come": {now.Add(time.Minute), 10 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			u := unknownRuns{map[string]time.Time{}, map[plannedMinute]int{{"acme/app", now}: unknownPerMinute}}
			for i := range unknownAtMost - 1 {
				u.planned[plannedMinute{fmt.Sprint("acme/", i), test.others}] = 1
				u.next[fmt.Sprint(i)] = now
			}
			u.next["last"] = now
			u.plan("acme/lib", "1", 10*time.Second, now, deadline)
			if got := u.plan("acme/app", "2", 10*time.Second, now, deadline); !got.Equal(now.Add(test.after)) {
				t.Errorf("asked again at %s, want %s", got, now.Add(test.after))
			}
			if len(u.planned) != test.left || len(u.next) != 2 {
				t.Errorf("%d minutes and %d runs are remembered, want %d and 2", len(u.planned), len(u.next), test.left)
			}
		})
	}
}
